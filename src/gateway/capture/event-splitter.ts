/** Server-sent events as bytes: each as it came, with the blank line that ends it, and what its `data` lines say. */

export interface RawEvent {
  readonly bytes: Buffer;
  /** null = it has none. */
  readonly data: string | null;
}

const lineFeed = 0x0a;
const carriageReturn = 0x0d;
const lineEnd = /\r\n|\r|\n/;

export class EventSplitter {
  #held: Buffer = Buffer.alloc(0);
  /** Where a blank line may begin in what is held: all before was looked at. */
  #lookedAt = 0;

  /** Bytes that no event has taken yet. */
  get heldBytes(): number {
    return this.#held.length;
  }

  push(chunk: Buffer): readonly RawEvent[] {
    const bytes = this.#held.length === 0 ? chunk : Buffer.concat([this.#held, chunk]);
    const events: RawEvent[] = [];
    const hasReturns = bytes.includes(carriageReturn);
    let from = 0;
    for (let look = this.#lookedAt; ;) {
      const end = eventEnd(bytes, look, hasReturns);
      if (end === -1) break;
      events.push(rawEvent(bytes.subarray(from, end)));
      from = end;
      look = end;
    }
    this.#held = bytes.subarray(from);
    this.#lookedAt = Math.max(0, this.#held.length - 3);
    return events;
  }

  /** What the last blank line did not end. */
  rest(): RawEvent | null {
    const bytes = this.#held;
    this.#held = Buffer.alloc(0);
    return bytes.length === 0 ? null : rawEvent(bytes);
  }
}

/** The same event with other data. */
export function eventWithData({ bytes }: RawEvent, data: string): Buffer {
  const lines = bytes
    .toString('utf8')
    .split(lineEnd)
    .filter((line) => line !== '' && !line.startsWith('data'));
  return Buffer.from([...lines, `data: ${data}`, '', ''].join('\n'));
}

/** Behind the blank line; -1 = none. */
function eventEnd(bytes: Buffer, from: number, hasReturns: boolean): number {
  if (!hasReturns) {
    const at = bytes.indexOf('\n\n', from);
    return at === -1 ? -1 : at + 2;
  }
  for (let at = from; at < bytes.length; at += 1) {
    const first = lineEndAt(bytes, at);
    if (first === 0) continue;
    const second = lineEndAt(bytes, at + first);
    if (second > 0) return at + first + second;
    at += first - 1;
  }
  return -1;
}

/** Length of the line end that stands there; 0 = none, or none that is known to have come whole. */
function lineEndAt(bytes: Buffer, at: number): number {
  if (bytes[at] === lineFeed) return 1;
  if (bytes[at] !== carriageReturn || at + 1 >= bytes.length) return 0;
  return bytes[at + 1] === lineFeed ? 2 : 1;
}

function rawEvent(bytes: Buffer): RawEvent {
  // As engines write them: one line of data, and its blank line.
  if (bytes.indexOf(lineFeed) === bytes.length - 2 && !bytes.includes(carriageReturn)) {
    const line = bytes.toString('utf8', 0, bytes.length - 2);
    if (line.startsWith('data: ')) return { bytes, data: line.slice(6) };
  }
  const lines = bytes
    .toString('utf8')
    .split(lineEnd)
    .filter((line) => line === 'data' || line.startsWith('data:'))
    .map((line) => line.slice(5).replace(/^ /, ''));
  return { bytes, data: lines.length === 0 ? null : lines.join('\n') };
}
