/** A TCP port on loopback in front of another one, which can be shut: what a partition is made of. */
import { createServer, connect, type Server, type Socket } from 'node:net';
import { once } from 'node:events';

/** `silent`: bytes are held, as on a network that loses them; `reset`: connections break, and new ones too. */
export type DoorState = 'open' | 'silent' | 'reset';

export class TcpDoor implements AsyncDisposable {
  readonly port: number;
  readonly #server: Server;
  readonly #sockets = new Set<Socket>();
  #state: DoorState = 'open';
  #targetPort: number;

  static async open(targetPort: number): Promise<TcpDoor> {
    const server = createServer({ pauseOnConnect: true, noDelay: true });
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    return new TcpDoor(server, targetPort);
  }

  private constructor(server: Server, targetPort: number) {
    this.#server = server;
    this.#targetPort = targetPort;
    const address = server.address();
    this.port = typeof address === 'object' && address !== null ? address.port : 0;
    server.on('connection', (socket) => this.#accept(socket));
  }

  /** New connections go there; those that are open stay. */
  aimAt(targetPort: number): void {
    this.#targetPort = targetPort;
  }

  /** What was held while it was silent goes on its way when it is open again, as retransmitted segments do. */
  set(state: DoorState): void {
    this.#state = state;
    for (const socket of this.#sockets) {
      if (state === 'reset') socket.resetAndDestroy();
      else if (state === 'silent') socket.pause();
      else socket.resume();
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const closed = once(this.#server, 'close');
    this.#server.close();
    for (const socket of this.#sockets) socket.destroy();
    await closed;
  }

  #accept(near: Socket): void {
    if (this.#state === 'reset') {
      near.resetAndDestroy();
      return;
    }
    const far = connect({ port: this.#targetPort, host: '127.0.0.1', noDelay: true });
    far.pause();
    this.#join(near, far);
    this.#join(far, near);
    if (this.#state === 'open') {
      near.resume();
      far.resume();
    }
  }

  #join(from: Socket, to: Socket): void {
    this.#sockets.add(from);
    from.on('data', (bytes) => {
      if (to.write(bytes)) return;
      from.pause();
      to.once('drain', () => {
        if (this.#state === 'open') from.resume();
      });
    });
    from.on('end', () => to.end());
    from.on('error', () => to.destroy());
    from.on('close', () => {
      this.#sockets.delete(from);
      to.destroy();
    });
  }
}
