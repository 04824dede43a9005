import type { RequestListener } from 'node:http';
import type { FastifyInstance } from 'fastify';
import type { SessionServer } from './session-server.ts';

const all = ['GET', 'POST', 'PUT', 'DELETE', 'PATCH'];

/**
 * Puts the session routes before the framework: their paths never enter a route, everything else does. Call it before `listen`. The routes serve further addresses
 * that a name such as `localhost` stands for.
 */
export function registerSessions(server: FastifyInstance, sessions: SessionServer): void {
  for (const url of ['/sessions', '/sessions/*', '/k/:key/sessions', '/k/:key/sessions/*'])
    server.route({
      ...{ method: all, url, exposeHeadRoute: false },
      onRequest: (request, reply) => {
        if (sessions.handle(request.raw, reply.raw)) reply.hijack();
        else reply.callNotFound();
      },
      handler: () => undefined,
    });
  const listeners = server.server.listeners('request') as RequestListener[];
  server.server.removeAllListeners('request');
  server.server.on('request', (request, response) => {
    if (sessions.handle(request, response)) return;
    for (const listener of listeners) listener.call(server.server, request, response);
  });
}
