/** A tiny HTTP host that answers with given bytes and remembers what it was asked; for what no real engine can be made to do. */
import { once } from 'node:events';
import {
  createServer,
  type IncomingHttpHeaders,
  type IncomingMessage,
  type Server,
  type ServerResponse,
} from 'node:http';
import type { AddressInfo } from 'node:net';

export interface Asked {
  readonly method: string;
  /** Path and query as they came. */
  readonly target: string;
  readonly headers: IncomingHttpHeaders;
  readonly body: Record<string, unknown>;
}

export type Answer = (asked: Asked, response: ServerResponse) => void | Promise<void>;

export class FakeHost implements AsyncDisposable {
  readonly asked: Asked[] = [];
  /** Connections of answers that were closed before their end. */
  cut = 0;
  /** Answers that have not ended. */
  open = 0;
  connections = 0;
  readonly #server: Server;
  #waiting: (() => void)[] = [];

  private constructor(answer: Answer) {
    this.#server = createServer((request, response) => {
      void this.#serve(request, response, answer);
    });
    this.#server.on('connection', () => (this.connections += 1));
  }

  static async open(answer: Answer): Promise<FakeHost> {
    const host = new FakeHost(answer);
    host.#server.listen(0, '127.0.0.1');
    await once(host.#server, 'listening');
    return host;
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  get url(): string {
    return `http://127.0.0.1:${this.port}`;
  }

  /** Resolves once `condition` holds; checked whenever something happens here. */
  async until(condition: () => boolean): Promise<void> {
    while (!condition()) await new Promise<void>((resolve) => this.#waiting.push(resolve));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#server.closeAllConnections();
    this.#server.close();
    await once(this.#server, 'close');
  }

  async #serve(request: IncomingMessage, response: ServerResponse, answer: Answer): Promise<void> {
    let text = '';
    for await (const piece of request.setEncoding('utf8')) text += String(piece);
    this.open += 1;
    response.on('close', () => {
      this.open -= 1;
      if (!response.writableFinished) this.cut += 1;
      this.#tell();
    });
    const asked: Asked = {
      method: request.method ?? '',
      target: request.url ?? '',
      headers: request.headers,
      body: text === '' ? {} : (JSON.parse(text) as Record<string, unknown>),
    };
    this.asked.push(asked);
    this.#tell();
    await answer(asked, response);
  }

  #tell(): void {
    for (const resolve of this.#waiting.splice(0)) resolve();
  }
}

export function sendJson(
  response: ServerResponse,
  document: unknown,
  { status = 200, headers = {} }: { status?: number; headers?: Record<string, string> } = {},
): void {
  response.writeHead(status, { 'content-type': 'application/json', ...headers });
  const isText = typeof document === 'string' || Buffer.isBuffer(document);
  response.end(isText ? document : JSON.stringify(document));
}

/** Opens an event stream and sends each document; `[DONE]` as a string is sent as it is. */
export function sendEvents(response: ServerResponse, documents: readonly unknown[]): void {
  if (!response.headersSent) response.writeHead(200, { 'content-type': 'text/event-stream' });
  response.flushHeaders();
  for (const document of documents) {
    const text = typeof document === 'string' ? document : JSON.stringify(document);
    response.write(`data: ${text}\n\n`);
  }
}
