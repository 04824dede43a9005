import type { FastifyInstance } from 'fastify';
import type { Logger } from '../core/logger.ts';
import type { RolloutService } from '../scheduler/rollout-service.ts';
import { buildHttpApp } from './http-app.ts';
import type { ServerLimits } from './ports.ts';
import { addPlainHealthRoute } from './routes/health.ts';

export interface DataServerParts {
  readonly service: RolloutService;
  readonly logger: Logger;
  readonly limits: ServerLimits;
  readonly instanceId: string | null;
  /** Adds the gateway's routes, which check their keys themselves. */
  readonly mountGateway: (app: FastifyInstance) => void;
}

/** The data server: the gateway's routes and `/health`. It does not listen yet; whoever builds it closes it. */
export function buildDataServer(parts: DataServerParts): FastifyInstance {
  const app = buildHttpApp({
    limits: parts.limits,
    logger: parts.logger,
    methodsOf: (path) => (path === '/health' ? ['GET', 'HEAD'] : []),
  });
  addPlainHealthRoute(app, parts.service, parts.instanceId);
  parts.mountGateway(app);
  return app;
}
