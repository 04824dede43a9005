import type { RequestListener } from 'node:http';
import type { FastifyInstance } from 'fastify';
import type { ModelGateway } from './model-gateway.ts';
import { gatewayPaths } from './relay-request.ts';

const paths = gatewayPaths.flatMap((suffix) =>
  ['', '/v1', '/k/:key', '/k/:key/v1'].map((prefix) => prefix + suffix),
);

/**
 * Puts the relay before the framework: its paths (`[/k/KEY][/v1]/chat/completions`, `[/k/KEY][/v1]/models`) never enter a route, everything else
 * does; calls of chat completions are read before `node:http` sees them. Call it before `listen`. The routes serve `inject`, and further addresses that a name such as `localhost` stands for.
 */
export function registerGateway(server: FastifyInstance, relay: ModelGateway): void {
  for (const url of paths)
    server.route({
      method: ['GET', 'POST'],
      url,
      exposeHeadRoute: false,
      onRequest: (request, reply) => {
        // The framework also finds a path whose letters are escaped; to the relay it is none.
        if (relay.handle(request.raw, reply.raw)) reply.hijack();
        else reply.callNotFound();
      },
      handler: () => undefined,
    });
  const listeners = server.server.listeners('request') as RequestListener[];
  server.server.removeAllListeners('request');
  server.server.on('request', (request, response) => {
    if (relay.handle(request, response)) return;
    for (const listener of listeners) listener.call(server.server, request, response);
  });
  const connections = relay.readConnections(server.server);
  server.addHook('preClose', (done) => {
    connections.close();
    done();
  });
}
