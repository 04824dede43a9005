/**
 * Server-sent events: every event after a cursor, as long as the reader is there. The store is read page by page and nothing is kept in memory, so that
 * neither a slow reader nor a burst makes it grow; a reader that takes nothing for too long loses its connection, not events: it resumes by cursor.
 */
import type { ServerResponse } from 'node:http';
import type { EventsDocument } from '../wire/api/event.ts';
import { StreamOut, type StreamOutParts } from './stream-out.ts';

export interface EventStreamParts extends StreamOutParts {
  readonly read: (after: number | null, limit: number) => Promise<EventsDocument>;
  readonly onEvents: (listener: () => void) => () => void;
}

const pageSize = 200;

export class EventStream {
  readonly #parts: EventStreamParts;
  readonly #closing = new AbortController();

  constructor(parts: EventStreamParts) {
    this.#parts = parts;
  }

  /** Ends the connection in good order; `run` resolves. */
  close(): void {
    this.#closing.abort(new Error('the stream is closed'));
  }

  /** Resolves when the reader is gone, or the stream was closed, or the store failed: the reader comes back with its cursor then. */
  async run(out: ServerResponse, after: number | null): Promise<void> {
    const end = (): void => this.close();
    out.once('close', end);
    out.once('error', end);
    const news = new News(this.#parts.onEvents);
    try {
      if (out.destroyed) return;
      const stream = new StreamOut(out, this.#parts, this.#closing.signal);
      stream.open('text/event-stream; charset=utf-8');
      await this.#send(stream, { after, news });
    } catch {
      // Nothing can be said any more on a connection that is open; the reader sees its end.
    } finally {
      news[Symbol.dispose]();
      if (this.#closing.signal.aborted) out.end();
      else out.destroy();
    }
  }

  async #send(
    stream: StreamOut,
    from: { readonly after: number | null; readonly news: News },
  ): Promise<void> {
    const { signal } = this.#closing;
    let cursor = from.after;
    while (!signal.aborted) {
      from.news.forget();
      const page = await this.#parts.read(cursor, pageSize);
      cursor = page.next_after;
      const frames = page.events.map(
        (event) => `id: ${event.cursor}\nevent: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`,
      );
      if (page.gap !== null) frames.unshift(`event: gap\ndata: ${JSON.stringify(page.gap)}\n\n`);
      await stream.write(frames.join(''));
      if (page.events.length === pageSize) continue;
      if (!(await stream.hasNews(from.news.next)))
        // An id without data moves the reader past events that it may not see.
        await stream.write(`: nothing new\nid: ${cursor}\n\n`);
    }
  }
}

/** Whether there were events since it was last asked. Listens before the store is read, so that none falls between. */
class News implements Disposable {
  readonly #stop: () => void;
  #pending = bell();

  constructor(onEvents: (listener: () => void) => () => void) {
    this.#stop = onEvents(() => this.#pending.resolve());
  }

  get next(): Promise<void> {
    return this.#pending.promise;
  }

  forget(): void {
    this.#pending = bell();
  }

  [Symbol.dispose](): void {
    this.#stop();
  }
}

function bell(): { readonly promise: Promise<void>; readonly resolve: () => void } {
  let resolve = (): void => undefined;
  const promise = new Promise<void>((ring) => (resolve = ring));
  return { promise, resolve: () => resolve() };
}
