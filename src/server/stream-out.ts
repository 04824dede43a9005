/**
 * What long answers share: their headers, how they are written to a reader that may be slow, and how a reader without news is given a sign. Nothing is kept for a
 * reader: one that takes nothing for too long loses its connection, and comes back with its cursor.
 */
import { once } from 'node:events';
import type { ServerResponse } from 'node:http';
import type { Clock } from '../core/clock.ts';
import { LinkedAbort } from '../core/linked-abort.ts';
import type { ServerLimits } from './ports.ts';

export interface StreamOutParts {
  readonly limits: Pick<ServerLimits, 'keepAliveMs' | 'slowReaderMs'>;
  readonly clock: Clock;
}

export class StreamOut {
  readonly #out: ServerResponse;
  readonly #parts: StreamOutParts;
  readonly #signal: AbortSignal;

  /** `signal` fires when nobody is to be written to any more. */
  constructor(out: ServerResponse, parts: StreamOutParts, signal: AbortSignal) {
    this.#out = out;
    this.#parts = parts;
    this.#signal = signal;
  }

  open(contentType: string): void {
    this.#out.writeHead(200, {
      'content-type': contentType,
      'cache-control': 'no-store',
      // Nothing comes after a stream: kept alive, the connection would outlive the server.
      connection: 'close',
      'x-content-type-options': 'nosniff',
    });
    this.#out.flushHeaders();
  }

  /** Waits for a reader that is behind; rejects when it takes nothing for too long, or the signal fires. */
  async write(text: string): Promise<void> {
    const out = this.#out;
    if (text === '' || out.destroyed || out.write(text)) return;
    const { clock, limits } = this.#parts;
    using link = new LinkedAbort([this.#signal]);
    const tooSlow = clock.sleep(limits.slowReaderMs, link.signal).then(() => {
      throw new Error('the reader takes nothing');
    });
    try {
      await Promise.race([once(out, 'drain', { signal: link.signal }), tooSlow]);
    } finally {
      link.abort(new Error('done'));
      await tooSlow.catch(() => undefined);
    }
  }

  /** False = there was no news for as long as a reader is left without a sign. */
  async hasNews(news: Promise<unknown>): Promise<boolean> {
    const { clock, limits } = this.#parts;
    using link = new LinkedAbort([this.#signal]);
    const quiet = clock.sleep(limits.keepAliveMs, link.signal).then(
      () => false,
      () => true,
    );
    try {
      return await Promise.race([news.then(() => true), quiet]);
    } finally {
      link.abort(new Error('done'));
    }
  }
}
