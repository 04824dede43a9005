/**
 * Lines of a collection behind a cursor, until it is over and its last line is sent. Nothing is kept for a reader: one that takes nothing for too long loses its
 * connection, not lines.
 */
import { once } from 'node:events';
import type { ServerResponse } from 'node:http';
import type { Clock } from '../../core/clock.ts';
import { LinkedAbort } from '../../core/linked-abort.ts';
import type { ServerLimits } from '../ports.ts';
import type { Collection } from './collection.ts';

export interface CollectionStreamParts {
  readonly collection: Collection;
  readonly limits: Pick<ServerLimits, 'keepAliveMs' | 'slowReaderMs'>;
  readonly clock: Clock;
}

export class CollectionStream {
  readonly #parts: CollectionStreamParts;
  readonly #closing = new LinkedAbort([]);

  constructor(parts: CollectionStreamParts) {
    this.#parts = parts;
  }

  /** Ends the connection in good order; `run` resolves. */
  close(): void {
    this.#closing.abort(new Error('the stream is closed'));
  }

  /** Resolves when everything is sent, or the reader is gone, or the stream was closed. */
  async run(out: ServerResponse, after: number): Promise<void> {
    const end = (): void => this.close();
    out.once('close', end);
    out.once('error', end);
    try {
      if (out.destroyed) return;
      out.writeHead(200, {
        'content-type': 'application/x-ndjson',
        'cache-control': 'no-store',
        // Nothing comes after a stream: kept alive, the connection would outlive the server.
        connection: 'close',
        'x-content-type-options': 'nosniff',
      });
      out.flushHeaders();
      await this.#send(out, after);
      out.end();
    } catch {
      // The reader sees the end of its connection, and comes back with its cursor.
      if (this.#closing.signal.aborted) out.end();
      else out.destroy();
    }
  }

  async #send(out: ServerResponse, after: number): Promise<void> {
    const { collection } = this.#parts;
    const { signal } = this.#closing;
    for (let cursor = after; !signal.aborted;) {
      const line = collection.lines.next(cursor);
      if (line !== null) {
        cursor = line.cursor;
        await this.#write(out, line.text);
      } else if (collection.isOver) {
        return;
      } else if (!(await this.#waitForLine())) {
        await this.#write(out, `${JSON.stringify({ type: 'idle', state: collection.state })}\n`);
      }
    }
  }

  /** False = there was none for as long as a reader is left without a sign. */
  async #waitForLine(): Promise<boolean> {
    const { collection, clock, limits } = this.#parts;
    using link = new LinkedAbort([this.#closing.signal]);
    const change = Promise.withResolvers<boolean>();
    const stop = collection.lines.onChange(() => change.resolve(true));
    const quiet = clock.sleep(limits.keepAliveMs, link.signal).then(
      () => false,
      () => true,
    );
    try {
      return await Promise.race([change.promise, quiet]);
    } finally {
      stop();
      link.abort(new Error('done'));
    }
  }

  async #write(out: ServerResponse, text: string): Promise<void> {
    if (out.destroyed || out.write(text)) return;
    const { clock, limits } = this.#parts;
    using link = new LinkedAbort([this.#closing.signal]);
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
}
