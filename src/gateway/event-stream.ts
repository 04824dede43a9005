/** Server-sent events to one client: no faster than it reads, with a sign of life whenever nothing else went out for a while, never inside an event. */
import { once } from 'node:events';
import type { ServerResponse } from 'node:http';
import type { Clock } from '../core/clock.ts';
import { LinkedAbort } from '../core/linked-abort.ts';
import type { SentEvent } from './dialects/dialect.ts';

export interface EventStreamOptions {
  readonly clock: Clock;
  readonly headers: Readonly<Record<string, string>>;
  /** Silence for this long brings `keepAlive`. */
  readonly keepAliveMs: number;
  readonly keepAlive: () => readonly SentEvent[];
  /** Ends waiting for the client. */
  readonly signal: AbortSignal;
}

export class EventStream implements Disposable {
  readonly #response: ServerResponse;
  readonly #options: EventStreamOptions;
  readonly #life = new LinkedAbort([]);
  #lastSentMs: number;

  /** The status and the headers go out at once. */
  constructor(response: ServerResponse, options: EventStreamOptions) {
    this.#response = response;
    this.#options = options;
    this.#lastSentMs = options.clock.monotonicMs();
    response.writeHead(200, {
      'content-type': 'text/event-stream; charset=utf-8',
      'cache-control': 'no-cache',
      ...options.headers,
    });
    response.flushHeaders();
    void this.#stayAlive();
  }

  /** Resolves when the client has room for more; rejects with the signal's reason. */
  async send(events: readonly SentEvent[]): Promise<void> {
    const { signal } = this.#options;
    signal.throwIfAborted();
    if (!this.#write(events)) await once(this.#response, 'drain', { signal });
  }

  /** Nothing follows but `closing`, as it stands; what was sent goes out. */
  end(events: readonly SentEvent[], closing = ''): void {
    this[Symbol.dispose]();
    this.#write(events);
    this.#response.end(closing);
  }

  [Symbol.dispose](): void {
    this.#life.abort(new Error('the stream has ended'));
  }

  #write(events: readonly SentEvent[]): boolean {
    if (events.length === 0) return true;
    this.#lastSentMs = this.#options.clock.monotonicMs();
    return this.#response.write(events.map(spelled).join(''));
  }

  async #stayAlive(): Promise<void> {
    const { clock, keepAliveMs, keepAlive } = this.#options;
    const { signal } = this.#life;
    try {
      for (;;) {
        const silentMs = clock.monotonicMs() - this.#lastSentMs;
        if (silentMs < keepAliveMs) await clock.sleep(keepAliveMs - silentMs, signal);
        // A client that does not read has enough to read.
        else if (this.#response.writableNeedDrain) await clock.sleep(keepAliveMs, signal);
        else {
          this.#write(keepAlive());
          this.#lastSentMs = clock.monotonicMs();
        }
      }
    } catch {
      // The stream has ended.
    }
  }
}

function spelled({ event, data }: SentEvent): string {
  const line = `data: ${JSON.stringify(data)}\n\n`;
  return event === null ? line : `event: ${event}\n${line}`;
}
