/** A way to an engine that tells apart whose calls it carries: `URL/r/ID/v1` leads to `ENGINE/v1`. */
import { createServer, request, type IncomingMessage, type ServerResponse } from 'node:http';
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';

export class EngineFront implements AsyncDisposable {
  readonly #engineUrl: string;
  readonly #server = createServer((asked, answer) => this.#carry(asked, answer));
  readonly #open = new Map<string, number>();
  readonly #firstAt = new Map<string, number>();

  constructor(engineUrl: string) {
    this.#engineUrl = engineUrl;
  }

  async start(): Promise<void> {
    this.#server.listen(0, '127.0.0.1');
    await once(this.#server, 'listening');
  }

  apiBase(id: string): string {
    const { port } = this.#server.address() as AddressInfo;
    return `http://127.0.0.1:${port}/r/${id}/v1`;
  }

  /** Calls that the engine works on for this rollout. */
  open(id: string): number {
    return this.#open.get(id) ?? 0;
  }

  /** When its first call came, in milliseconds of the epoch; null = none has. */
  firstAt(id: string): number | null {
    return this.#firstAt.get(id) ?? null;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#server.closeAllConnections();
    this.#server.close();
    await once(this.#server, 'close');
  }

  #carry(asked: IncomingMessage, answer: ServerResponse): void {
    const [, id = '', rest = ''] = /^\/r\/([^/]+)(\/.*)$/.exec(asked.url ?? '') ?? [];
    this.#open.set(id, this.open(id) + 1);
    if (!this.#firstAt.has(id)) this.#firstAt.set(id, Date.now());
    const headers = { ...asked.headers };
    delete headers.host;
    const upstream = request(`${this.#engineUrl}${rest}`, { method: asked.method, headers });
    let isOpen = true;
    const end = (): void => {
      if (isOpen) this.#open.set(id, this.open(id) - 1);
      isOpen = false;
    };
    upstream.on('close', end);
    upstream.on('error', () => answer.destroy());
    upstream.on('response', (response) => {
      answer.writeHead(response.statusCode ?? 502, response.headers);
      response.pipe(answer);
      response.on('error', () => answer.destroy());
    });
    answer.on('close', () => upstream.destroy());
    asked.pipe(upstream);
  }
}
