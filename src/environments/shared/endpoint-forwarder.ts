import { connect, createServer, type Server, type Socket } from 'node:net';
import { isReachedFromSandboxAddress, sandboxAddress } from '../../wire/sandbox-address.ts';
import type { HostEndpoint } from '../environment.ts';
import { listenOn, type ListenAddress } from './listen-address.ts';

/**
 * Brings the one host endpoint to a sandbox: each connection to its listening address is joined to the endpoint, byte for
 * byte, with half-closed connections kept. Nothing else of the host is reachable through it. An endpoint on loopback sees the address of
 * sandboxes as the caller's.
 */
export class EndpointForwarder {
  readonly #server: Server;
  readonly #sockets = new Set<Socket>();
  #closing: Promise<void> | null = null;

  constructor(endpoint: HostEndpoint, options: { readonly maxConnections?: number } = {}) {
    const { host } = endpoint;
    const from = isReachedFromSandboxAddress(host) ? { localAddress: sandboxAddress } : {};
    this.#server = createServer({ allowHalfOpen: true }, (inside) => {
      const outside = connect({ ...endpoint, ...from, allowHalfOpen: true });
      this.#join(inside, outside);
      this.#join(outside, inside);
    });
    this.#server.maxConnections = options.maxConnections ?? 512;
  }

  /** Starts listening; resolves with the port in use (0 picks a free one), null for a unix socket. */
  listen(at: ListenAddress): Promise<{ readonly port: number | null }> {
    return listenOn(this.#server, at);
  }

  /** Stops listening and ends every connection. Idempotent. */
  close(): Promise<void> {
    this.#closing ??= new Promise((resolve) => {
      this.#server.close(() => resolve());
      for (const socket of this.#sockets) socket.destroy();
    });
    return this.#closing;
  }

  #join(from: Socket, to: Socket): void {
    this.#sockets.add(from);
    from.pipe(to);
    from.on('error', () => to.destroy());
    from.once('close', (hadError) => {
      this.#sockets.delete(from);
      if (hadError || !from.readableEnded) to.destroy();
    });
  }
}
