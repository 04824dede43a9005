import { fastify, type FastifyInstance } from 'fastify';
import type { ControlServerParts } from './ports.ts';

/** The control server: `/rollout`, `/health`, `/metrics` and `/api/v1`. It does not listen yet; whoever builds it closes it. */
export function buildControlServer(parts: ControlServerParts): FastifyInstance {
  return fastify({ bodyLimit: parts.limits.bodyBytes });
}
