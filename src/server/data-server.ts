import { fastify, type FastifyInstance } from 'fastify';
import type { Logger } from '../core/logger.ts';
import type { RolloutService } from '../scheduler/rollout-service.ts';
import type { ServerLimits } from './ports.ts';

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
  const app = fastify({ bodyLimit: parts.limits.bodyBytes });
  parts.mountGateway(app);
  return app;
}
