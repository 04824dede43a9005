/**
 * One answer on a connection, cut anywhere: interim heads, the head, the body. At most one piece comes of each cut. Bytes behind the end are nobody's answer: they
 * are dropped, and the connection is not used again.
 */
import { answerHead, type AnswerHead } from './answer-head.ts';
import { ChunkedBody } from './chunked-body.ts';
import { headLimitBytes } from './message-head.ts';
import { invalidAnswer, UpstreamError } from './upstream-error.ts';

export interface AnswerSink {
  head(head: AnswerHead): void;
  /** Never empty. */
  piece(bytes: Buffer): void;
}

/** Interim heads before the answer. */
const mostInterim = 16;
const nothing: Buffer = Buffer.alloc(0);
const emptyLine = Buffer.from('\r\n\r\n');

export class AnswerReader {
  readonly #sink: AnswerSink;
  #held: Buffer = nothing;
  #head: AnswerHead | null = null;
  #interim = 0;
  #chunks: ChunkedBody | null = null;
  #left = 0;
  #hasBegun = false;
  #isDone = false;
  #hasMore = false;

  constructor(sink: AnswerSink) {
    this.#sink = sink;
  }

  /** A byte of it came. */
  get hasBegun(): boolean {
    return this.#hasBegun;
  }

  get isDone(): boolean {
    return this.#isDone;
  }

  /** How long the connection may be kept for another request; 0 = not at all. */
  get keptMs(): number {
    return this.#isDone && !this.#hasMore ? (this.#head?.keptMs ?? 0) : 0;
  }

  /** Throws UpstreamError for what is no answer; nothing may follow then. */
  push(bytes: Buffer): void {
    this.#hasBegun = true;
    if (this.#isDone) {
      this.#hasMore = true;
      return;
    }
    if (this.#head !== null) {
      this.#readBody(bytes, 0);
      return;
    }
    const all = this.#held.length === 0 ? bytes : Buffer.concat([this.#held, bytes]);
    const from = this.#readHead(all);
    if (from === null) return;
    this.#held = nothing;
    this.#readBody(all, from);
  }

  /** The upstream closed. Throws UpstreamError where the answer had not ended. */
  end(): void {
    if (this.#head?.body === 'until-close') this.#isDone = true;
    if (!this.#isDone)
      throw new UpstreamError('CONNECTION_CLOSED', 'the connection was closed before the end');
  }

  /** Where the body begins; null = the head is not complete, and held. */
  #readHead(bytes: Buffer): number | null {
    for (let from = 0; ;) {
      const end = bytes.indexOf(emptyLine, from);
      if ((end === -1 ? bytes.length : end) - from > headLimitBytes)
        throw invalidAnswer('the head of the answer is too long');
      if (end === -1) {
        this.#held = bytes.subarray(from);
        return null;
      }
      const head = answerHead(bytes.toString('latin1', from, end));
      from = end + emptyLine.length;
      if (head.status === 101) throw invalidAnswer('the answer is of another protocol');
      if (head.status < 200) {
        this.#interim += 1;
        if (this.#interim > mostInterim) throw invalidAnswer('the answer does not begin');
        continue;
      }
      this.#head = head;
      if (head.body === 'chunked') this.#chunks = new ChunkedBody();
      else if (head.body !== 'until-close') this.#left = head.body;
      this.#sink.head(head);
      return from;
    }
  }

  #readBody(bytes: Buffer, from: number): void {
    let end: number;
    if (this.#chunks !== null) {
      const pieces: Buffer[] = [];
      end = this.#chunks.take(bytes, from, pieces);
      const [first] = pieces;
      this.#isDone = this.#chunks.isDone;
      this.#hasMore = end < bytes.length;
      if (first !== undefined)
        this.#sink.piece(pieces.length === 1 ? first : Buffer.concat(pieces));
      return;
    }
    if (this.#head?.body === 'until-close') end = bytes.length;
    else {
      end = Math.min(bytes.length, from + this.#left);
      this.#left -= end - from;
      this.#isDone = this.#left === 0;
    }
    this.#hasMore = end < bytes.length;
    if (end === from) return;
    this.#sink.piece(from === 0 && end === bytes.length ? bytes : bytes.subarray(from, end));
  }
}
