import type { FastifyInstance } from 'fastify';
import { openApiDocument } from '../wire/api/openapi.ts';
import { operations } from '../wire/api/operations.ts';
import { Access } from './access.ts';
import { buildHttpApp } from './http-app.ts';
import type { ControlServerParts } from './ports.ts';
import { addRoute, methodsOf, type Routing } from './route.ts';
import { addAgentServerRoutes } from './routes/agent-server.ts';
import { addCallbackRoutes } from './routes/callbacks.ts';
import { addCollectionRoutes } from './routes/collections.ts';
import { addDoctorRoutes } from './routes/doctor.ts';
import { addEventRoutes } from './routes/events.ts';
import { addFileRoutes } from './routes/files.ts';
import { addHealthRoute } from './routes/health.ts';
import { addRolloutRoutes } from './routes/rollout.ts';
import { addRolloutsRoutes } from './routes/rollouts.ts';
import { addSamplesRoute } from './routes/samples.ts';

/** The control server: `/rollout`, `/health`, `/metrics` and `/api/v1`. It does not listen yet; whoever builds it closes it. */
export function buildControlServer(parts: ControlServerParts): FastifyInstance {
  const { limits, logger } = parts;
  const access = new Access(parts.keys, parts.allowFrom);
  const app = buildHttpApp({
    ...{ limits, logger, methodsOf },
    // Clients put a path behind an address that ends with a slash.
    rewriteUrl: (url, raw) => withOneSlash(access.rewriteUrl(withOneSlash(url), raw)),
  });
  const routing: Routing = { app, access, parts };
  addRolloutRoutes(routing);
  addHealthRoute(routing);
  addRolloutsRoutes(routing);
  addFileRoutes(routing);
  addSamplesRoute(routing);
  addEventRoutes(routing);
  addCallbackRoutes(routing);
  addDoctorRoutes(routing);
  addAgentServerRoutes(routing, parts.agentServer);
  addCollectionRoutes(routing);
  const document = openApiDocument(parts.version);
  addRoute(routing, operations.openApi, () => document);
  return app;
}

function withOneSlash(url: string): string {
  return url.replace(/^\/{2,}/, '/');
}
