/**
 * Puts the calls that a gateway is made for past `node:http`: every connection of a server is read here first, and goes to the server's own listeners with the first
 * request that is not such a call. The server's time limits hold here too.
 */
import type { Server } from 'node:http';
import type { Socket } from 'node:net';
import type { Clock } from '../../core/clock.ts';
import { LinkedAbort } from '../../core/linked-abort.ts';
import { RawConnection, type RawOwner } from './raw-connection.ts';

const sweepMs = 1_000;
/** What runs when the server closes is cut off after a moment. */
const closeLimitMs = 2_000;

export interface RawConnectionsOptions {
  readonly clock: Clock;
  readonly admit: RawOwner['admit'];
}

export class RawConnections implements RawOwner {
  readonly #server: Server;
  readonly #options: RawConnectionsOptions;
  readonly #listeners: readonly ((socket: Socket) => void)[];
  readonly #open = new Set<RawConnection>();
  readonly #life = new LinkedAbort([]);
  #isSweeping = false;
  #isClosing = false;
  #date = { atMs: Number.NEGATIVE_INFINITY, text: '' };

  constructor(server: Server, options: RawConnectionsOptions) {
    this.#server = server;
    this.#options = options;
    this.#listeners = server.listeners('connection') as ((socket: Socket) => void)[];
    server.removeAllListeners('connection');
    server.on('connection', (socket: Socket) => this.#take(socket));
  }

  get admit(): RawOwner['admit'] {
    return this.#options.admit;
  }

  get isClosing(): boolean {
    return this.#isClosing;
  }

  get nowMs(): number {
    return this.#options.clock.monotonicMs();
  }

  get date(): string {
    const { nowMs } = this;
    if (nowMs - this.#date.atMs >= 1_000)
      this.#date = { atMs: nowMs, text: this.#options.clock.now().toUTCString() };
    return this.#date.text;
  }

  handOver(connection: RawConnection, socket: Socket, bytes: Buffer): void {
    this.#open.delete(connection);
    socket.pause();
    socket.unshift(bytes);
    for (const listener of this.#listeners) listener.call(this.#server, socket);
    process.nextTick(() => socket.resume());
  }

  gone(connection: RawConnection): void {
    this.#open.delete(connection);
    if (this.#isClosing && this.#open.size === 0) this.#life.abort(new Error('all are closed'));
  }

  /** Idle ones are closed at once, the others with their answer, or after a moment. Idempotent. */
  close(): void {
    if (this.#isClosing) return;
    this.#isClosing = true;
    for (const connection of [...this.#open])
      if (connection.idleSinceMs !== null) connection.destroy();
    if (this.#open.size === 0) this.#life.abort(new Error('all are closed'));
    else void this.#cutOff();
  }

  #take(socket: Socket): void {
    if (this.#isClosing) {
      socket.destroy();
      return;
    }
    this.#open.add(new RawConnection(socket, this));
    if (!this.#isSweeping) void this.#sweep();
  }

  async #cutOff(): Promise<void> {
    try {
      await this.#options.clock.sleep(closeLimitMs, this.#life.signal);
    } catch {
      return; // They were gone before.
    }
    for (const connection of [...this.#open]) connection.destroy();
  }

  /** While there are connections. */
  async #sweep(): Promise<void> {
    this.#isSweeping = true;
    const { signal } = this.#life;
    while (this.#open.size > 0 && !signal.aborted) {
      await this.#options.clock.sleep(sweepMs, signal).catch(() => undefined);
      const { keepAliveTimeout, requestTimeout } = this.#server;
      for (const connection of [...this.#open])
        if (
          this.#isLate(connection.idleSinceMs, keepAliveTimeout) ||
          this.#isLate(connection.readingSinceMs, requestTimeout)
        )
          connection.destroy();
    }
    this.#isSweeping = false;
  }

  /** A limit of 0 is none. */
  #isLate(sinceMs: number | null, limitMs: number): boolean {
    return sinceMs !== null && limitMs > 0 && this.nowMs - sinceMs > limitMs;
  }
}
