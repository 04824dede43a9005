/** A gateway on a port of the loopback; it listens when the first route is asked for. */
import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { GatewayControl, RouteRequest } from '../gateway/gateway-control.ts';
import { ModelGateway } from '../gateway/model-gateway.ts';
import type { ModelGatewayOptions } from '../gateway/gateway-options.ts';
import type { ModelRoute } from '../wire/rollout/model-route.ts';
import { listenRefused } from './serve/listen.ts';
import { UrlPolicy } from '../wire/url-policy.ts';

type ListeningGatewayOptions = Pick<
  ModelGatewayOptions,
  'clock' | 'logger' | 'openEngine' | 'capture' | 'engineKind'
> & {
  /** 0 or absent = one that the system chooses. */
  readonly port?: number;
};

export class ListeningGateway implements AsyncDisposable {
  readonly #gateway: ModelGateway;
  readonly #server: Server;
  readonly #port: number;
  #listening: Promise<string> | null = null;
  #baseUrl = '';

  constructor({ port = 0, ...options }: ListeningGatewayOptions) {
    this.#port = port;
    this.#gateway = new ModelGateway({
      ...options,
      // The address is of whoever started the run.
      policy: new UrlPolicy({ allow: [], privateAddresses: 'allow' }),
      baseUrl: () => this.#baseUrl,
    });
    this.#server = createServer((request, response) => {
      if (this.#gateway.handle(request, response)) return;
      response.writeHead(404).end();
    });
  }

  get control(): GatewayControl {
    return this.#gateway;
  }

  async register(request: RouteRequest): Promise<ModelRoute> {
    this.#baseUrl = await (this.#listening ??= this.#listen());
    return await this.#gateway.register(request);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#gateway.close();
    if (this.#listening === null) return;
    await this.#listening.catch(() => undefined);
    const gone = new Promise<void>((resolve) => this.#server.close(() => resolve()));
    this.#server.closeAllConnections();
    await gone;
  }

  async #listen(): Promise<string> {
    const at = { host: '127.0.0.1', port: this.#port };
    try {
      this.#server.listen(at);
      await once(this.#server, 'listening');
    } catch (error) {
      throw listenRefused(at, 'environment.kwargs.gateway_port', error);
    }
    const { port } = this.#server.address() as AddressInfo;
    return `http://127.0.0.1:${port}/v1`;
  }
}
