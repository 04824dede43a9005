/**
 * An agent on a connection that `node:http` does not see. The first bytes of an answer go out with its head in one write, and an answer that is complete in one
 * turn as one piece.
 */
import { STATUS_CODES } from 'node:http';
import type { HeaderList } from '../upstream/message-head.ts';
import type { BodyTaker } from '../upstream/upstream-request.ts';
import type { AgentListener, AgentSide } from './agent-side.ts';
import type { RawHead } from './raw-head.ts';
import type { SaidHead } from './said-head.ts';

type Written = (error?: Error | null) => void;

/** What an agent needs of its connection. */
export interface RawLine {
  /** `HTTP-date` of now. */
  readonly date: string;
  /** The answer says that it is kept. */
  readonly isKept: boolean;
  /** False = wait for `drained`. */
  write(bytes: Buffer | string, written?: Written): boolean;
  destroy(): void;
  /** Bytes of the body are read, or not for a while. */
  read(isRead: boolean): void;
  /** The answer has gone out. */
  answered(): void;
}

/** Larger pieces are written beside their frame instead of being copied into it. */
const copiedBytes = 64 * 1024;

export class RawAgent implements AgentSide {
  readonly method = 'POST';
  readonly contentEncoding = null;
  readonly said: SaidHead;
  readonly length: number;
  readonly arrived: Buffer | null;
  readonly #line: RawLine;
  /** What of the body was here from the beginning, until somebody takes it. */
  #first: Buffer | null;
  #left: number;
  #taker: BodyTaker | null = null;
  #isDiscarded = false;
  #listener: AgentListener | null = null;
  #sentStatus: number | null = null;
  #isChunked = false;
  /** The head, and what goes out with it. */
  #pending: { readonly head: string; bytes: Buffer | null } | null = null;
  #isEnding = false;
  #isDelivered = false;

  /** `first`: bytes of the body that came with the head. */
  constructor(head: RawHead, first: Buffer, line: RawLine) {
    this.said = head.said;
    this.length = head.length;
    this.#line = line;
    this.#left = head.length - first.length;
    this.arrived = this.#left === 0 ? first : null;
    this.#first = this.#left === 0 ? null : first;
  }

  /** Of the body, that have not come. */
  get left(): number {
    return this.#left;
  }

  get sentStatus(): number | null {
    return this.#sentStatus;
  }

  get isDelivered(): boolean {
    return this.#isDelivered;
  }

  listen(listener: AgentListener): void {
    this.#listener = listener;
  }

  start(taker: BodyTaker): void {
    this.#taker = taker;
    const first = this.#first;
    this.#first = null;
    this.#line.read(true);
    if (first !== null && first.length > 0) this.#hand(first, taker);
  }

  resume(): void {
    this.#line.read(true);
  }

  discard(): void {
    this.#isDiscarded = true;
    this.#first = null;
    this.#taker = null;
    if (this.#left > 0) this.#line.read(true);
  }

  head(status: number, headers: HeaderList): void {
    this.#sentStatus = status;
    let isFramed = status === 204 || status === 304;
    let text = `HTTP/1.1 ${status} ${STATUS_CODES[status] ?? ''}\r\n`;
    for (let index = 0; index + 1 < headers.length; index += 2) {
      const name = headers[index] ?? '';
      if (name === 'content-length') isFramed = true;
      text += `${name}: ${headers[index + 1] ?? ''}\r\n`;
    }
    this.#isChunked = !isFramed;
    if (this.#isChunked) text += 'transfer-encoding: chunked\r\n';
    const { date, isKept } = this.#line;
    const head = `${text}date: ${date}\r\nconnection: ${isKept ? 'keep-alive' : 'close'}\r\n\r\n`;
    this.#pending = { head, bytes: null };
    process.nextTick(() => this.#flush());
  }

  write(bytes: Buffer): boolean {
    const pending = this.#pending;
    if (pending?.bytes === null) {
      pending.bytes = bytes;
      return true;
    }
    this.#flush();
    if (!this.#isChunked) return this.#line.write(bytes);
    return this.#send('', bytes, '');
  }

  end(bytes: Buffer | null): void {
    this.#isEnding = true;
    if (bytes !== null && bytes.length > 0) this.write(bytes);
    const pending = this.#pending;
    this.#pending = null;
    const end = this.#isChunked ? '0\r\n\r\n' : '';
    const written = (error?: Error | null): void => {
      // The connection broke: it says so itself.
      if (error !== undefined && error !== null) return;
      this.#isDelivered = true;
      this.#listener?.agentDone();
      this.#line.answered();
    };
    if (pending !== null) this.#send(pending.head, pending.bytes, end, written);
    else this.#line.write(end, written);
  }

  destroy(): void {
    this.#line.destroy();
  }

  /** Bytes of the body; never more than are left of it. */
  came(bytes: Buffer): void {
    this.#left -= bytes.length;
    if (this.#taker !== null) this.#hand(bytes, this.#taker);
    else if (!this.#isDiscarded) {
      // Nobody took it yet: no more is read meanwhile.
      this.#first = this.#first === null ? bytes : Buffer.concat([this.#first, bytes]);
      this.#line.read(false);
    }
  }

  drained(): void {
    if (!this.#isEnding) this.#listener?.agentDrained();
  }

  /** The connection is closed. */
  gone(): void {
    this.#isEnding = true;
    this.#pending = null;
    this.#listener?.agentDone();
  }

  #hand(bytes: Buffer, taker: BodyTaker): void {
    if (!taker.piece(bytes)) this.#line.read(false);
    if (this.#left === 0) taker.end();
  }

  #flush(): void {
    const pending = this.#pending;
    if (pending === null) return;
    this.#pending = null;
    this.#send(pending.head, pending.bytes, '');
  }

  #send(head: string, bytes: Buffer | null, end: string, written?: Written): boolean {
    const size = bytes?.length ?? 0;
    const isChunk = this.#isChunked && size > 0;
    const before = isChunk ? `${head}${size.toString(16)}\r\n` : head;
    const after = isChunk ? `\r\n${end}` : end;
    if (bytes === null) return this.#line.write(before + after, written);
    if (size > copiedBytes) {
      this.#line.write(before);
      this.#line.write(bytes);
      return this.#line.write(after, written);
    }
    const whole = Buffer.allocUnsafe(before.length + size + after.length);
    whole.write(before, 0, 'latin1');
    bytes.copy(whole, before.length);
    whole.write(after, before.length + size, 'latin1');
    return this.#line.write(whole, written);
  }
}
