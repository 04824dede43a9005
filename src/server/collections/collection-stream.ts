/** Lines of a collection behind a cursor, until it is over and its last line is sent. */
import type { ServerResponse } from 'node:http';
import { LinkedAbort } from '../../core/linked-abort.ts';
import { StreamOut, type StreamOutParts } from '../stream-out.ts';
import type { Collection } from './collection.ts';

export interface CollectionStreamParts extends StreamOutParts {
  readonly collection: Collection;
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
      const stream = new StreamOut(out, this.#parts, this.#closing.signal);
      stream.open('application/x-ndjson');
      await this.#send(stream, after);
      out.end();
    } catch {
      // The reader sees the end of its connection, and comes back with its cursor.
      if (this.#closing.signal.aborted) out.end();
      else out.destroy();
    }
  }

  async #send(stream: StreamOut, after: number): Promise<void> {
    const { collection } = this.#parts;
    const { signal } = this.#closing;
    for (let cursor = after; !signal.aborted;) {
      const line = collection.lines.next(cursor);
      if (line !== null) {
        cursor = line.cursor;
        await stream.write(line.text);
      } else if (collection.isOver) {
        return;
      } else if (!(await this.#hasNews(stream))) {
        await stream.write(`${JSON.stringify({ type: 'idle', state: collection.state })}\n`);
      }
    }
  }

  async #hasNews(stream: StreamOut): Promise<boolean> {
    const change = Promise.withResolvers<undefined>();
    const stop = this.#parts.collection.lines.onChange(() => change.resolve(undefined));
    try {
      return await stream.hasNews(change.promise);
    } finally {
      stop();
    }
  }
}
