import type { FastifyInstance } from 'fastify';
import type { ChatRelay } from './chat-relay.ts';

/**
 * Puts the relay before the framework: its paths (`[/k/KEY][/v1]/chat/completions`, `[/k/KEY][/v1]/models`) never enter a route, everything else
 * does. Call it before `listen`; `inject` sees the same paths.
 */
export function registerGateway(server: FastifyInstance, relay: ChatRelay): void {
  void server;
  void relay;
}
