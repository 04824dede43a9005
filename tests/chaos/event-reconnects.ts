/** One reader follows a stream over many connections, each cut at some byte, while events come; what it saw is compared with what there was. */
import { seededRandom } from '../support/random.ts';
import { readStream } from '../support/event-reader.ts';

export interface ReconnectsOptions {
  /** Asked before every connection. */
  readonly url: () => string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly reconnects: number;
  readonly seed: number;
  /** A connection is cut after at most so many bytes. */
  readonly cutBytes: number;
  /** Makes at least `cutBytes` of events; called before every connection but the last, not awaited. */
  readonly makeEvents: () => Promise<void>;
  /** Called after every connection but the last, with how many there were. */
  readonly between?: (connections: number) => Promise<void>;
  /** The newest cursor, once `makeEvents` calls have ended. */
  readonly newest: () => Promise<number>;
  readonly signal: AbortSignal;
}

export interface ReconnectsReport {
  readonly connections: number;
  readonly seen: readonly number[];
  readonly newest: number;
  /** Empty = nothing was lost, doubled or out of order. */
  readonly problems: readonly string[];
}

export async function followOverReconnects(options: ReconnectsOptions): Promise<ReconnectsReport> {
  const random = seededRandom(options.seed);
  const seen: number[] = [];
  const problems: string[] = [];
  const making: Promise<void>[] = [];
  const read = async (limits: { readonly maxBytes?: number; readonly until?: number }) => {
    await readStream({
      url: options.url(),
      headers: options.headers ?? {},
      after: seen.at(-1) ?? null,
      signal: options.signal,
      ...(limits.maxBytes === undefined ? {} : { maxBytes: limits.maxBytes }),
      // Nothing new: what is still missing will not come.
      onComment: () => false,
      onEvent({ id, type, data }) {
        if (id === null) problems.push(`a notice: ${type} ${JSON.stringify(data)}`);
        else seen.push(id);
        return id === null || limits.until === undefined || id < limits.until;
      },
    });
  };
  for (let connection = 0; connection < options.reconnects; connection += 1) {
    making.push(options.makeEvents());
    await read({ maxBytes: 1 + Math.floor(random() * options.cutBytes) });
    await options.between?.(connection + 1);
  }
  await Promise.all(making);
  const newest = await options.newest();
  if ((seen.at(-1) ?? 0) < newest) await read({ until: newest });
  if (seen.at(-1) !== newest) problems.push(`the last is ${seen.at(-1)}, not ${newest}`);
  seen.forEach((cursor, index) => {
    const expected = (seen[index - 1] ?? 0) + 1;
    if (cursor !== expected) problems.push(`after ${expected - 1} came ${cursor}`);
  });
  return { connections: options.reconnects + 1, seen, newest, problems };
}
