/** Stands before a gateway: passes everything on, and keeps what was asked. */
import { once } from 'node:events';
import { createServer, request as send, type IncomingHttpHeaders, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';

export interface RecordedCall {
  readonly method: string;
  readonly path: string;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
  /** null = none before the client went. */
  readonly status: number | null;
}

export class RecordingFront implements AsyncDisposable {
  readonly #calls: { -readonly [Name in keyof RecordedCall]: RecordedCall[Name] }[] = [];
  #server: Server | null = null;

  get calls(): readonly RecordedCall[] {
    return this.#calls;
  }

  /** The address to give out instead of `baseUrl`. */
  async before(baseUrl: string): Promise<string> {
    const { origin, host, pathname } = new URL(baseUrl);
    const server = createServer((request, response) => {
      const chunks: Buffer[] = [];
      request.on('data', (chunk: Buffer) => chunks.push(chunk));
      request.on('end', () => {
        const body = Buffer.concat(chunks);
        const call = {
          method: request.method ?? '',
          path: request.url ?? '',
          headers: request.headers,
          body: body.toString('utf8'),
          status: null as number | null,
        };
        this.#calls.push(call);
        const onward = send(
          `${origin}${request.url ?? ''}`,
          { method: request.method ?? 'GET', headers: { ...request.headers, host } },
          (answer) => {
            call.status = answer.statusCode ?? null;
            response.writeHead(answer.statusCode ?? 502, answer.headers);
            answer.pipe(response);
            answer.on('error', () => response.destroy());
          },
        );
        onward.on('error', () => response.destroy());
        response.on('close', () => onward.destroy());
        onward.end(body);
      });
    });
    this.#server = server;
    server.listen({ host: '127.0.0.1', port: 0 });
    await once(server, 'listening');
    return `http://127.0.0.1:${(server.address() as AddressInfo).port}${pathname}`;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#server === null) return;
    const gone = once(this.#server, 'close');
    this.#server.close();
    this.#server.closeAllConnections();
    await gone;
  }
}
