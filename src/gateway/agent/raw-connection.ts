/**
 * A connection whose calls of chat completions are served here, one after the other, and which goes to `node:http` for good with the first request that is anything
 * else. Between two requests it is looked at by whoever keeps it: see `isIdleSince` and `isReadingSince`.
 */
import type { Socket } from 'node:net';
import { RawAgent, type RawLine } from './raw-agent.ts';
import { RawHeads, type RawHead } from './raw-head.ts';

export interface RawOwner {
  readonly date: string;
  readonly nowMs: number;
  /** Every connection ends with its answer. */
  readonly isClosing: boolean;
  /** Takes the call: what begins it; null = it is for `node:http`. */
  admit(head: RawHead): ((agent: RawAgent) => void) | null;
  /** `bytes` came and are nobody's yet. */
  handOver(connection: RawConnection, socket: Socket, bytes: Buffer): void;
  gone(connection: RawConnection): void;
}

export class RawConnection implements RawLine {
  readonly #socket: Socket;
  readonly #owner: RawOwner;
  readonly #onData = (bytes: Buffer): void => this.#take(bytes);
  readonly #onDrain = (): void => this.#agent?.drained();
  readonly #onEnd = (): void => void this.#socket.destroy();
  readonly #onClose = (): void => this.#closed();
  readonly #heads = new RawHeads();
  #agent: RawAgent | null = null;
  #isAnswered = false;
  #isKept = true;
  /** The last answer has gone out: what still comes is nobody's. */
  #isEnding = false;
  /** What came behind a request that is not over. */
  #ahead: Buffer | null = null;
  #sinceMs: number;

  constructor(socket: Socket, owner: RawOwner) {
    this.#socket = socket;
    this.#owner = owner;
    this.#sinceMs = owner.nowMs;
    this.#listen('on');
  }

  get date(): string {
    return this.#owner.date;
  }

  get isKept(): boolean {
    return this.#isKept && !this.#owner.isClosing;
  }

  /** Without a request since then; null = it has one. */
  get idleSinceMs(): number | null {
    return this.#agent === null ? this.#sinceMs : null;
  }

  /** A request is on its way since then; null = there is none, or all of it is here. */
  get readingSinceMs(): number | null {
    return this.#agent !== null && this.#agent.left > 0 ? this.#sinceMs : null;
  }

  write(bytes: Buffer | string, written?: (error?: Error | null) => void): boolean {
    if (typeof bytes === 'string') return this.#socket.write(bytes, 'latin1', written);
    return this.#socket.write(bytes, written);
  }

  destroy(): void {
    this.#socket.destroy();
  }

  read(isRead: boolean): void {
    if (!isRead) this.#socket.pause();
    else if (this.#ahead === null) this.#socket.resume();
  }

  answered(): void {
    this.#isAnswered = true;
    this.#turn();
  }

  #take(bytes: Buffer): void {
    const agent = this.#agent;
    if (this.#isEnding) return;
    if (agent === null) {
      this.#begin(bytes);
      return;
    }
    const mine = Math.min(agent.left, bytes.length);
    if (mine > 0) agent.came(mine === bytes.length ? bytes : bytes.subarray(0, mine));
    if (mine < bytes.length) this.#hold(bytes.subarray(mine));
    this.#turn();
  }

  #begin(bytes: Buffer): void {
    const head = this.#heads.read(bytes);
    const begin = head === null ? null : this.#owner.admit(head);
    if (head === null || begin === null) {
      this.#listen('off');
      this.#owner.handOver(this, this.#socket, bytes);
      return;
    }
    const end = head.size + head.length;
    const agent = new RawAgent(head, bytes.subarray(head.size, end), this);
    this.#agent = agent;
    this.#isAnswered = false;
    this.#isKept = head.isKept;
    this.#sinceMs = this.#owner.nowMs;
    if (bytes.length > end) this.#hold(bytes.subarray(end));
    begin(agent);
  }

  /** The client sends its next request before it has the answer: no more of it is read than came by chance. */
  #hold(bytes: Buffer): void {
    this.#ahead = this.#ahead === null ? bytes : Buffer.concat([this.#ahead, bytes]);
    this.#socket.pause();
  }

  /** Request and answer are over: the next one. */
  #turn(): void {
    const agent = this.#agent;
    if (agent === null || !this.#isAnswered) return;
    if (!this.isKept) {
      this.#agent = null;
      this.#isEnding = true;
      this.#socket.end();
      this.#socket.resume();
      return;
    }
    if (agent.left > 0) return;
    this.#agent = null;
    this.#sinceMs = this.#owner.nowMs;
    const ahead = this.#ahead;
    this.#ahead = null;
    if (this.#socket.isPaused()) this.#socket.resume();
    if (ahead !== null) this.#begin(ahead);
  }

  #listen(how: 'on' | 'off'): void {
    const socket = this.#socket;
    socket[how]('data', this.#onData);
    socket[how]('drain', this.#onDrain);
    // An agent that sends nothing more has left, as to `node:http`.
    socket[how]('end', this.#onEnd);
    socket[how]('error', this.#onEnd);
    socket[how]('close', this.#onClose);
  }

  #closed(): void {
    const agent = this.#agent;
    this.#agent = null;
    this.#owner.gone(this);
    agent?.gone();
  }
}
