/**
 * Requests to upstreams, each on a connection of its own while it runs. There is no limit of connections, no time limit but the one of connecting, no redirection,
 * no proxy and no compression: what a request costs is decided by whoever sends it.
 *
 * A request is sent a second time in one case only: its connection was a kept one that turned out to be closed, at once and before a byte of an answer,
 * and its body is still there. The second one goes over a new connection.
 */
import type { LookupFunction } from 'node:net';
import type { Clock } from '../../core/clock.ts';
import { LinkedAbort } from '../../core/linked-abort.ts';
import type { AnswerHead } from './answer-head.ts';
import type { ConnectionFailure, SentRequest, UpstreamConnection } from './upstream-connection.ts';
import { UpstreamError } from './upstream-error.ts';
import { UpstreamOrigin, type Connecting, type OriginOptions } from './upstream-origin.ts';
import {
  requestHead,
  type BodySource,
  type UpstreamExchange,
  type UpstreamRequest,
  type UpstreamSink,
} from './upstream-request.ts';

export interface UpstreamClientOptions {
  readonly clock: Clock;
  /** Asked whenever a connection to a name is made. */
  readonly lookup: LookupFunction;
  /** Certificate authorities in place of the system's. */
  readonly ca?: string;
}

const sweepMs = 1_000;
/** A kept connection that was closed says so at once, or when the loop of a busy process gets to it; one that breaks later broke while the request was being answered. */
const staleMs = 5_000;

export class UpstreamClient {
  readonly #options: OriginOptions;
  readonly #origins = new Map<string, UpstreamOrigin>();
  readonly #life = new LinkedAbort([]);
  #isSweeping = false;

  constructor({ clock, lookup, ca }: UpstreamClientOptions) {
    this.#options = { clock, lookup, ca: ca ?? null };
  }

  /** Connections that are open, idle ones included. */
  get connections(): number {
    let open = 0;
    for (const origin of this.#origins.values()) open += origin.open;
    return open;
  }

  /** Never throws: `sink` hears, in a later turn, why a request cannot be sent. */
  send(request: UpstreamRequest, sink: UpstreamSink): UpstreamExchange {
    try {
      this.#life.signal.throwIfAborted();
      const origin = this.#origin(request.origin);
      const first = requestHead(request, origin.authority);
      const { clock } = this.#options;
      const exchange = new Exchange({ clock, origin, first, body: request.body, sink });
      exchange.begin();
      return exchange;
    } catch (error) {
      return unsent(error, sink);
    }
  }

  /** Closes every connection; what runs fails. Idempotent. */
  destroy(): void {
    const error = new UpstreamError('CLIENT_CLOSED', 'the gateway closes');
    this.#life.abort(error);
    for (const origin of this.#origins.values()) origin.destroy(error);
    this.#origins.clear();
  }

  #origin(name: string): UpstreamOrigin {
    const known = this.#origins.get(name);
    if (known !== undefined) return known;
    const origin = new UpstreamOrigin(name, this.#options);
    this.#origins.set(name, origin);
    if (!this.#isSweeping) void this.#sweep();
    return origin;
  }

  /** While there is an origin: one without connections is forgotten. */
  async #sweep(): Promise<void> {
    this.#isSweeping = true;
    const { signal } = this.#life;
    while (this.#origins.size > 0 && !signal.aborted) {
      await this.#options.clock.sleep(sweepMs, signal).catch(() => undefined);
      for (const [name, origin] of this.#origins) {
        origin.sweep();
        if (origin.open === 0) this.#origins.delete(name);
      }
    }
    this.#isSweeping = false;
  }
}

interface ExchangeParts {
  readonly clock: Clock;
  readonly origin: UpstreamOrigin;
  readonly first: string;
  readonly body: Buffer | BodySource | null;
  readonly sink: UpstreamSink;
}

class Exchange implements UpstreamExchange, SentRequest {
  readonly first: string;
  readonly body: Buffer | BodySource | null;
  readonly #parts: ExchangeParts;
  #connecting: Connecting | null = null;
  #connection: UpstreamConnection | null = null;
  #sentMs = 0;
  #isSecond = false;
  #isOver = false;

  constructor(parts: ExchangeParts) {
    this.#parts = parts;
    this.first = parts.first;
    this.body = parts.body;
  }

  begin(): void {
    const kept = this.#parts.origin.take();
    if (kept === null) this.#connect();
    else this.#send(kept);
  }

  pause(): void {
    this.#connection?.pause(this);
  }

  resume(): void {
    this.#connection?.resume(this);
  }

  abort(): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#connecting?.abandon();
    this.#connection?.destroy();
  }

  head(head: AnswerHead): void {
    this.#parts.sink.head(head);
  }

  piece(bytes: Buffer): void {
    this.#parts.sink.piece(bytes);
  }

  ended(): void {
    this.#isOver = true;
    this.#parts.sink.ended();
  }

  broke({ error, isStale }: ConnectionFailure): void {
    if (this.#isOver) return;
    const { clock } = this.#parts;
    const isThere = this.body === null || Buffer.isBuffer(this.body);
    const isSoon = clock.monotonicMs() - this.#sentMs < staleMs;
    if (isStale && isThere && isSoon && !this.#isSecond) this.#connect();
    else this.#fail(error);
  }

  #connect(): void {
    this.#isSecond = true;
    this.#connection = null;
    this.#connecting = this.#parts.origin.connect(
      (connection) => this.#send(connection),
      (error) => this.#fail(error),
    );
  }

  #send(connection: UpstreamConnection): void {
    this.#connecting = null;
    this.#connection = connection;
    this.#sentMs = this.#parts.clock.monotonicMs();
    connection.send(this);
  }

  #fail(error: Error): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#parts.sink.failed(error);
  }
}

function unsent(error: unknown, sink: UpstreamSink): UpstreamExchange {
  let isOver = false;
  process.nextTick(() => {
    if (!isOver) sink.failed(error instanceof Error ? error : new Error('a defect'));
  });
  return {
    pause: () => undefined,
    resume: () => undefined,
    abort: () => {
      isOver = true;
    },
  };
}
