/**
 * Follows the log of one session command by WebSocket. A stream that breaks, or stays silent although its command has ended, is opened again: the log
 * is told from its beginning, and what has come before is skipped.
 */
import WebSocket from 'ws';
import type { Clock } from '../../../core/clock.ts';
import { LinkedAbort } from '../../../core/linked-abort.ts';
import { raceSignal } from '../../../core/race-signal.ts';
import { ApiError, isStatus } from '../api/api-error.ts';
import type { Toolbox } from './toolbox.ts';

const maxOpenings = 6;
const handshakeMs = 20_000;
const firstWaitMs = 200;
/** A command's end is known before the last of its log has been sent. */
const tailMs = 5_000;

export interface FollowedCommand {
  readonly sessionId: string;
  readonly commandId: string;
}

export class LogFollower {
  readonly #toolbox: Toolbox;
  readonly #command: FollowedCommand;
  readonly #parts: {
    readonly onBytes: (bytes: Buffer) => void;
    readonly clock: Clock;
    readonly silenceMs: number;
  };
  readonly #over = new LinkedAbort([]);
  #socket: WebSocket | null = null;
  #seen = 0;
  #isPaused = false;
  #lastByteAt = performance.now();
  /** Resolves when the log is at its end; rejects when it cannot be followed any more, or with what `stop` was given. */
  readonly ended: Promise<void>;

  constructor(
    toolbox: Toolbox,
    command: FollowedCommand,
    parts: {
      /** The bytes are the callee's. */
      readonly onBytes: (bytes: Buffer) => void;
      readonly clock: Clock;
      readonly silenceMs: number;
    },
  ) {
    this.#toolbox = toolbox;
    this.#command = command;
    this.#parts = parts;
    this.ended = this.#follow();
    this.ended.catch(() => undefined); // whoever waits is told
  }

  pause(): void {
    this.#isPaused = true;
    this.#socket?.pause();
  }

  resume(): void {
    this.#isPaused = false;
    this.#socket?.resume();
  }

  stop(reason: unknown): void {
    this.#over.abort(reason);
    this.#socket?.terminate();
  }

  async #follow(): Promise<void> {
    const { signal } = this.#over;
    try {
      for (let opening = 1; ; opening += 1) {
        const before = this.#seen;
        const close = await this.#read();
        signal.throwIfAborted();
        if (close.isEnd) return;
        if (this.#seen > before) opening = 1;
        if (opening >= maxOpenings) throw close.cause;
        await this.#parts.clock.sleep(firstWaitMs * 2 ** (opening - 1), signal);
      }
    } finally {
      this.#over[Symbol.dispose]();
    }
  }

  /** One stream, from its opening to its end. */
  async #read(): Promise<{ readonly isEnd: boolean; readonly cause: unknown }> {
    const { sessionId, commandId } = this.#command;
    const socket = new WebSocket(this.#toolbox.logsUrl(sessionId, commandId), {
      headers: this.#toolbox.headers,
      handshakeTimeout: handshakeMs,
      perMessageDeflate: false,
      maxPayload: 64 * 1024 * 1024,
    });
    this.#socket = socket;
    this.#lastByteAt = performance.now();
    let skip = this.#seen;
    let cause: unknown = null;
    const closed = Promise.withResolvers<number>();
    socket.on('open', () => {
      if (this.#isPaused) socket.pause();
    });
    socket.on('message', (data: Buffer) => {
      this.#lastByteAt = performance.now();
      const fresh = data.subarray(Math.min(skip, data.length));
      skip -= data.length - fresh.length;
      this.#seen += fresh.length;
      if (fresh.length > 0) this.#parts.onBytes(fresh);
    });
    socket.on('error', (error) => {
      cause = error;
    });
    socket.on('close', (code) => closed.resolve(code));
    if (this.#over.signal.aborted) socket.terminate();
    using watching = new LinkedAbort([this.#over.signal]);
    const watch = this.#watch(socket, watching.signal);
    const code = await closed.promise;
    watching.abort('closed');
    await watch;
    if (code === 1000 && cause === null) return { isEnd: true, cause: null };
    return {
      isEnd: await this.#hasGone(cause),
      cause:
        cause ??
        new ApiError(`the stream of a log broke (code ${code})`, { status: 0, mayBeDone: true }),
    };
  }

  /** Cuts a stream that says nothing of an end that the sandbox knows of. */
  async #watch(socket: WebSocket, signal: AbortSignal): Promise<void> {
    const { clock, silenceMs } = this.#parts;
    try {
      for (;;) {
        await clock.sleep(silenceMs, signal);
        if (this.#isPaused || performance.now() - this.#lastByteAt < silenceMs) continue;
        if (!(await this.#hasEnded(signal))) continue;
        await clock.sleep(Math.min(tailMs, silenceMs), signal);
        if (performance.now() - this.#lastByteAt >= silenceMs) socket.terminate();
      }
    } catch {
      // the stream has closed, or the sandbox does not answer: the next opening tells
      if (!signal.aborted) socket.terminate();
    }
  }

  async #hasEnded(signal: AbortSignal): Promise<boolean> {
    const { sessionId, commandId } = this.#command;
    return (
      (await raceSignal(this.#toolbox.exitCode(sessionId, commandId, signal), signal)) !== null
    );
  }

  /** A stream that cannot be opened any more, because there is nothing to follow. */
  async #hasGone(cause: unknown): Promise<boolean> {
    if (cause === null) return false;
    const { sessionId, commandId } = this.#command;
    try {
      await this.#toolbox.exitCode(sessionId, commandId, this.#over.signal);
      return false;
    } catch (error) {
      return isStatus(error, 404, 410);
    }
  }
}
