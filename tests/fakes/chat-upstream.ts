/** A chat address of a controller: keeps what it got, byte for byte, and answers as the test says. */
import { once } from 'node:events';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

export interface ReceivedCall {
  readonly method: string;
  readonly url: string;
  readonly rawHeaders: readonly string[];
  readonly headers: IncomingMessage['headers'];
  readonly body: Buffer;
}

export type Answer = (response: ServerResponse, call: ReceivedCall) => void | Promise<void>;

export class ChatUpstream implements AsyncDisposable {
  readonly received: ReceivedCall[] = [];
  readonly #server: Server;
  #open = 0;
  #changed = Promise.withResolvers<undefined>();

  private constructor(answer: Answer) {
    this.#server = createServer((request, response) => {
      this.#count(1);
      response.on('close', () => this.#count(-1));
      void this.#take(request, response, answer);
    });
  }

  static async start(answer: Answer): Promise<ChatUpstream> {
    const upstream = new ChatUpstream(answer);
    upstream.#server.listen(0, '127.0.0.1');
    await once(upstream.#server, 'listening');
    return upstream;
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  get url(): string {
    return `http://127.0.0.1:${this.port}`;
  }

  /** Requests without an end so far. */
  get open(): number {
    return this.#open;
  }

  /** Resolves when as many requests are open. */
  async opened(count: number): Promise<void> {
    while (this.#open !== count) await this.#changed.promise;
  }

  /** As a crash does. */
  cutConnections(): void {
    this.#server.closeAllConnections();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#server.closeAllConnections();
    this.#server.close();
    await once(this.#server, 'close');
  }

  async #take(request: IncomingMessage, response: ServerResponse, answer: Answer): Promise<void> {
    const pieces: Buffer[] = [];
    try {
      for await (const piece of request as AsyncIterable<Buffer>) pieces.push(piece);
    } catch {
      return; // The relay ended the request.
    }
    const { method = '', url = '', rawHeaders, headers } = request;
    const call = { method, url, rawHeaders, headers, body: Buffer.concat(pieces) };
    this.received.push(call);
    await answer(response, call);
  }

  #count(by: number): void {
    this.#open += by;
    this.#changed.resolve(undefined);
    this.#changed = Promise.withResolvers<undefined>();
  }
}
