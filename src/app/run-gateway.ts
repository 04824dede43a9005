/**
 * The gateway of a run on this machine, for agents that speak from inside their sandbox: it listens on the loopback from the first of them on. Each trial
 * has a key of its own, which dies with it; the key of the model stays here.
 */
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { OpenRoute, RouteOpener } from '../agents/agent.ts';
import type { Clock } from '../core/clock.ts';
import type { Logger } from '../core/logger.ts';
import type { EngineOpener } from '../engines/engine.ts';
import { ModelGateway } from '../gateway/model-gateway.ts';
import { UrlPolicy } from '../wire/url-policy.ts';

export interface RunGatewayParts {
  readonly clock: Clock;
  readonly logger: Logger;
  readonly openEngine: EngineOpener;
}

export class RunGateway implements AsyncDisposable {
  readonly #gateway: ModelGateway;
  readonly #server: Server;
  #listening: Promise<string> | null = null;
  #baseUrl = '';

  constructor(parts: RunGatewayParts) {
    this.#gateway = new ModelGateway({
      ...parts,
      // The address is of whoever started the run.
      policy: new UrlPolicy({ allow: [], privateAddresses: 'allow' }),
      baseUrl: () => this.#baseUrl,
    });
    this.#server = createServer((request, response) => {
      if (this.#gateway.handle(request, response)) return;
      response.writeHead(404).end();
    });
  }

  /** MODEL_UNSPECIFIED, or CONFIG_INVALID for an address that is none. */
  readonly open: RouteOpener = async ({ baseUrl, apiKey }): Promise<OpenRoute> => {
    this.#baseUrl = await (this.#listening ??= this.#listen());
    const rolloutId = randomUUID();
    const route = await this.#gateway.register({
      rolloutId,
      upstreamUrl: baseUrl,
      upstreamKey: apiKey,
    });
    return {
      ...route,
      close: async () => {
        await this.#gateway.abort(rolloutId);
      },
    };
  };

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#gateway.close();
    if (this.#listening === null) return;
    await this.#listening.catch(() => undefined);
    const gone = new Promise<void>((resolve) => this.#server.close(() => resolve()));
    this.#server.closeAllConnections();
    await gone;
  }

  async #listen(): Promise<string> {
    this.#server.listen({ host: '127.0.0.1', port: 0 });
    await once(this.#server, 'listening');
    const { port } = this.#server.address() as AddressInfo;
    return `http://127.0.0.1:${port}/v1`;
  }
}
