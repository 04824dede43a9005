import { createServer, type Server } from 'node:http';
import { once } from 'node:events';
import type { AddressInfo, Socket } from 'node:net';
import { networkInterfaces } from 'node:os';

/** A web server of the test on the host; counts what reaches it. */
export class HostListener implements AsyncDisposable {
  readonly word: string;
  readonly #server: Server;
  readonly #sockets = new Set<Socket>();
  requests = 0;

  private constructor(word: string) {
    this.word = word;
    this.#server = createServer((_request, response) => {
      this.requests += 1;
      response.end(word);
    });
    this.#server.on('connection', (socket) => {
      this.#sockets.add(socket);
      socket.on('close', () => this.#sockets.delete(socket));
    });
  }

  /** Answers every GET with `word`; `address` `0.0.0.0` is all addresses of the host. */
  static async open(word: string, address: string): Promise<HostListener> {
    const listener = new HostListener(word);
    listener.#server.listen(0, address);
    await once(listener.#server, 'listening');
    return listener;
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const socket of this.#sockets) socket.destroy();
    this.#server.close();
    await once(this.#server, 'close');
  }
}

/** IPv4 addresses at which this host answers, loopback left out. */
export function hostAddresses(): readonly string[] {
  return Object.values(networkInterfaces())
    .flatMap((addresses) => addresses ?? [])
    .filter(({ family, internal }) => family === 'IPv4' && !internal)
    .map(({ address }) => address);
}
