import type { FastifyInstance } from 'fastify';
import type { Logger } from '../core/logger.ts';
import { buildHttpApp } from './http-app.ts';
import type { ServerLimits } from './ports.ts';

type Answer = Readonly<Record<string, unknown>>;

export interface DataServerParts {
  /** What `/health` says: anybody may ask. */
  readonly health: () => Answer | Promise<Answer>;
  readonly logger: Logger;
  readonly limits: ServerLimits;
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
  app.get('/health', () => parts.health());
  parts.mountGateway(app);
  return app;
}
