/** A reader of an event stream, as programs that follow a server are: it resumes by the id of the last event that it has seen. */
import { createParser } from 'eventsource-parser';
import { request } from 'undici';

export interface ReadEvent {
  /** null = a notice of the stream itself. */
  readonly id: number | null;
  readonly type: string;
  readonly data: Readonly<Record<string, unknown>>;
}

export interface ReadOptions {
  readonly url: string;
  readonly headers?: Readonly<Record<string, string>>;
  /** null = from the oldest. */
  readonly after: number | null;
  /** Called per event; false ends the connection, wherever the bytes of the next one are. */
  readonly onEvent: (event: ReadEvent) => boolean;
  /** Cuts the connection after so many bytes, in the middle of whatever comes; default never. */
  readonly maxBytes?: number;
  readonly onComment?: (text: string) => boolean;
  readonly signal: AbortSignal;
}

/** Reads until it is told to stop or the server ends. Rejects when the answer is no stream, or the connection breaks. */
export async function readStream(options: ReadOptions): Promise<void> {
  const { url, after, maxBytes = Infinity, signal } = options;
  const answer = await request(url, {
    headers: {
      accept: 'text/event-stream',
      ...options.headers,
      ...(after === null ? {} : { 'last-event-id': String(after) }),
    },
    ...{ signal, bodyTimeout: 0 },
  });
  if (answer.statusCode !== 200)
    throw new Error(`answered ${answer.statusCode}: ${await answer.body.text()}`);
  const state = { isOver: false };
  const parser = createParser({
    onEvent({ id, event = 'message', data }) {
      if (state.isOver) return;
      const cursor = event === 'gap' || id === undefined ? null : Number(id);
      const parsed = JSON.parse(data) as Readonly<Record<string, unknown>>;
      state.isOver = !options.onEvent({ id: cursor, type: event, data: parsed });
    },
    onComment(text) {
      if (!state.isOver && options.onComment !== undefined) state.isOver = !options.onComment(text);
    },
  });
  const utf8 = new TextDecoder();
  let bytes = 0;
  for await (const chunk of answer.body as AsyncIterable<Buffer>) {
    const part = chunk.subarray(0, Math.max(0, maxBytes - bytes));
    bytes += chunk.length;
    parser.feed(utf8.decode(part, { stream: true }));
    if (state.isOver || bytes >= maxBytes) break;
  }
}
