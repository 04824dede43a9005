/** The connections to one origin: those that come about, those that answer, and those that are kept for a while, of which the freshest is used first. */
import { connect, isIP, type LookupFunction, type OnReadOpts, type Socket } from 'node:net';
import { connect as connectTls } from 'node:tls';
import type { Clock } from '../../core/clock.ts';
import { LinkedAbort } from '../../core/linked-abort.ts';
import { UpstreamConnection, type ConnectionOwner } from './upstream-connection.ts';
import { UpstreamError } from './upstream-error.ts';

export interface OriginOptions {
  readonly clock: Clock;
  /** Asked whenever a connection to a name is made. */
  readonly lookup: LookupFunction;
  /** Certificate authorities in place of the system's; null = the system's. */
  readonly ca: string | null;
}

export interface Connecting {
  /** Nothing more is heard of it. */
  abandon(): void;
}

interface Kept {
  readonly connection: UpstreamConnection;
  readonly untilMs: number;
}

const connectMs = 10_000;
/** Less than the five seconds after which uvicorn closes idle connections: a request that crosses that close is lost. */
const idleMs = 4_000;
/** So that a long silence does not look dead to a router in between. */
const probeAfterMs = 30_000;

/** Of all connections: what is read is copied out of it in the same turn. */
const readBuffer = Buffer.allocUnsafeSlow(64 * 1024);

/** Reads into one buffer for all, past the streams of Node, which would take a new one of 64 KiB for every read. */
class SocketReader {
  /** null = it is not connected. */
  take: ((bytes: Buffer) => void) | null = null;
  readonly onread: OnReadOpts = {
    buffer: readBuffer,
    callback: (size) => {
      this.take?.(Buffer.from(readBuffer.subarray(0, size)));
      return true;
    },
  };
}

export class UpstreamOrigin implements ConnectionOwner {
  /** As requests name it. */
  readonly authority: string;
  readonly #options: OriginOptions;
  readonly #isTls: boolean;
  readonly #host: string;
  readonly #port: number;
  readonly #connecting = new Set<(error: Error) => void>();
  readonly #connections = new Set<UpstreamConnection>();
  #kept: Kept[] = [];

  /** `origin`: scheme, host and port. */
  constructor(origin: string, options: OriginOptions) {
    const { protocol, hostname, host, port } = new URL(origin);
    this.#options = options;
    this.#isTls = protocol === 'https:';
    this.authority = host;
    this.#host = hostname.replace(/^\[(.*)\]$/, '$1');
    this.#port = port === '' ? (this.#isTls ? 443 : 80) : Number(port);
  }

  /** Connections, idle ones and those that come about included. */
  get open(): number {
    return this.#connections.size + this.#connecting.size;
  }

  get idle(): number {
    return this.#kept.length;
  }

  /** One that is kept; null = there is none. */
  take(): UpstreamConnection | null {
    const nowMs = this.#options.clock.monotonicMs();
    for (let kept = this.#kept.pop(); kept !== undefined; kept = this.#kept.pop()) {
      if (kept.untilMs > nowMs) return kept.connection;
      kept.connection.destroy();
    }
    return null;
  }

  /** A new one, in a later turn; `failed` says why there is none. */
  connect(
    ready: (connection: UpstreamConnection) => void,
    failed: (error: Error) => void,
  ): Connecting {
    const reader = new SocketReader();
    const socket = this.#socket(reader);
    const bound = new LinkedAbort([]);
    const end = (): void => {
      this.#connecting.delete(fail);
      bound.abort(new Error('it is decided'));
      socket.removeAllListeners();
      // An error after the end of it is nobody's.
      socket.on('error', () => undefined);
    };
    const fail = (error: Error): void => {
      end();
      socket.destroy();
      failed(error);
    };
    this.#connecting.add(fail);
    socket.once(this.#isTls ? 'secureConnect' : 'connect', () => {
      end();
      const connection = new UpstreamConnection(socket, this);
      reader.take = (bytes) => connection.take(bytes);
      this.#connections.add(connection);
      ready(connection);
    });
    socket.once('error', fail);
    socket.once('close', () => fail(new UpstreamError('CONNECTION_CLOSED', 'it was closed')));
    this.#options.clock.sleep(connectMs, bound.signal).then(
      () => fail(new UpstreamError('CONNECT_TIMEOUT', 'there is no connection in time')),
      () => undefined,
    );
    return {
      abandon: () => {
        if (!this.#connecting.has(fail)) return;
        end();
        socket.destroy();
      },
    };
  }

  free(connection: UpstreamConnection, keptMs: number): void {
    const untilMs = this.#options.clock.monotonicMs() + Math.min(idleMs, keptMs);
    this.#kept.push({ connection, untilMs });
  }

  gone(connection: UpstreamConnection): void {
    this.#connections.delete(connection);
    const at = this.#kept.findIndex((each) => each.connection === connection);
    if (at !== -1) this.#kept.splice(at, 1);
  }

  /** Closes those that were idle for long enough. */
  sweep(): void {
    const nowMs = this.#options.clock.monotonicMs();
    for (const { connection, untilMs } of [...this.#kept])
      if (untilMs <= nowMs) connection.destroy();
  }

  /** Closes all; their requests fail. */
  destroy(error: Error): void {
    for (const fail of [...this.#connecting]) fail(error);
    for (const connection of [...this.#connections]) connection.fail(error);
  }

  #socket(reader: SocketReader): Socket {
    const { lookup, ca } = this.#options;
    const { onread } = reader;
    const [host, port] = [this.#host, this.#port];
    if (!this.#isTls) {
      const keepAlive = { keepAlive: true, keepAliveInitialDelay: probeAfterMs };
      return connect({ host, port, lookup, onread, noDelay: true, ...keepAlive });
    }
    const socket = connectTls({
      ...{ host, port, lookup, onread, ALPNProtocols: ['http/1.1'] },
      ...(isIP(host) === 0 && { servername: host }),
      ...(ca !== null && { ca }),
    });
    socket.setNoDelay(true);
    socket.setKeepAlive(true, probeAfterMs);
    return socket;
  }
}
