/** A TCP port on loopback in front of another one, which can be shut: what a partition is made of. */
import { createServer, connect, type Server, type Socket } from 'node:net';
import { once } from 'node:events';

/** `silent`: bytes are held, as on a network that loses them; `deaf`: those of answers alone; `mute`: those of questions alone; `reset`: connections break, and new ones too. */
export type DoorState = 'open' | 'silent' | 'deaf' | 'mute' | 'reset';

export class TcpDoor implements AsyncDisposable {
  readonly port: number;
  readonly #server: Server;
  readonly #sockets = new Map<Socket, 'near' | 'far'>();
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
    for (const [socket, side] of this.#sockets) {
      if (state === 'reset') socket.resetAndDestroy();
      else if (this.#flows(side)) socket.resume();
      else socket.pause();
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const closed = once(this.#server, 'close');
    this.#server.close();
    for (const socket of this.#sockets.keys()) socket.destroy();
    await closed;
  }

  #accept(near: Socket): void {
    if (this.#state === 'reset') {
      near.resetAndDestroy();
      return;
    }
    const far = connect({ port: this.#targetPort, host: '127.0.0.1', noDelay: true });
    far.pause();
    this.#join(near, far, 'near');
    this.#join(far, near, 'far');
    if (this.#flows('near')) near.resume();
    if (this.#flows('far')) far.resume();
  }

  #flows(side: 'near' | 'far'): boolean {
    if (this.#state === 'open') return true;
    return (
      (this.#state === 'deaf' && side === 'near') || (this.#state === 'mute' && side === 'far')
    );
  }

  #join(from: Socket, to: Socket, side: 'near' | 'far'): void {
    this.#sockets.set(from, side);
    from.on('data', (bytes) => {
      if (to.write(bytes)) return;
      from.pause();
      to.once('drain', () => {
        if (this.#flows(side)) from.resume();
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
