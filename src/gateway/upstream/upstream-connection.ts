/**
 * One connection to an upstream: one request at a time, its answer to the end, then free for another one. It is free only after an answer that ended cleanly, with
 * its request sent whole and nothing behind it; whatever else happens closes it.
 */
import type { Socket } from 'node:net';
import { AnswerReader, type AnswerSink } from './answer-reader.ts';
import { UpstreamError } from './upstream-error.ts';
import type { BodySource, BodyTaker } from './upstream-request.ts';

/** One request for a connection, and who hears of its answer: `ended` or `broke` is the last of it. */
export interface SentRequest extends AnswerSink {
  /** Latin-1. */
  readonly first: string;
  readonly body: Buffer | BodySource | null;
  ended(): void;
  broke(failure: ConnectionFailure): void;
}

export interface ConnectionFailure {
  readonly error: Error;
  /** The connection was used before, and not a byte of this answer came. */
  readonly isStale: boolean;
}

export interface ConnectionOwner {
  /** It can take another request within as many milliseconds. */
  free(connection: UpstreamConnection, keptMs: number): void;
  /** It is closed, or about to be. Once. */
  gone(connection: UpstreamConnection): void;
}

/** Smaller bodies are copied behind their head: one write costs less than two. */
const copiedBytes = 64 * 1024;

export class UpstreamConnection {
  readonly #socket: Socket;
  readonly #owner: ConnectionOwner;
  /** Nothing comes for a request that was ended. */
  readonly #sink: AnswerSink = {
    head: (head) => this.#request?.head(head),
    piece: (bytes) => this.#request?.piece(bytes),
  };
  #request: SentRequest | null = null;
  #reader: AnswerReader | null = null;
  #isBodySent = true;
  #answers = 0;
  #isPaused = false;
  #isGone = false;
  #error: Error | null = null;

  /** `socket` is connected. */
  constructor(socket: Socket, owner: ConnectionOwner) {
    this.#socket = socket;
    this.#owner = owner;
    socket.on('end', () => this.#ended());
    socket.on('drain', () => this.#drained());
    socket.on('error', (error) => (this.#error ??= error));
    socket.on('close', () => this.#broke(this.#error ?? closed()));
  }

  send(request: SentRequest): void {
    const { first, body } = request;
    this.#request = request;
    this.#reader = new AnswerReader(this.#sink);
    if (body === null) this.#socket.write(first, 'latin1');
    else if (Buffer.isBuffer(body)) this.#write(first, body);
    else {
      this.#isBodySent = false;
      this.#socket.write(first, 'latin1');
      body.start(this.#taker(request, body));
    }
  }

  pause(request: SentRequest): void {
    if (this.#request !== request || this.#isPaused) return;
    this.#isPaused = true;
    this.#socket.pause();
  }

  resume(request: SentRequest): void {
    if (this.#request !== request) return;
    this.#unpause();
  }

  /** Its request breaks for good, where there is one. */
  fail(error: Error): void {
    const request = this.#request;
    this.destroy();
    request?.broke({ error, isStale: false });
  }

  /** Its request hears nothing more. */
  destroy(): void {
    this.#request = null;
    this.#leave();
  }

  #write(first: string, body: Buffer): void {
    if (body.length > copiedBytes) {
      this.#socket.cork();
      this.#socket.write(first, 'latin1');
      this.#socket.write(body);
      this.#socket.uncork();
      return;
    }
    const bytes = Buffer.allocUnsafe(first.length + body.length);
    bytes.write(first, 0, 'latin1');
    body.copy(bytes, first.length);
    this.#socket.write(bytes);
  }

  #taker(request: SentRequest, body: BodySource): BodyTaker {
    const { length } = body;
    return {
      piece: (bytes) => {
        if (this.#request !== request || bytes.length === 0) return true;
        if (length !== null) return this.#socket.write(bytes);
        this.#socket.cork();
        this.#socket.write(`${bytes.length.toString(16)}\r\n`, 'latin1');
        this.#socket.write(bytes);
        const hasRoom = this.#socket.write('\r\n', 'latin1');
        this.#socket.uncork();
        return hasRoom;
      },
      end: () => {
        if (this.#request !== request) return;
        this.#isBodySent = true;
        if (length === null) this.#socket.write('0\r\n\r\n', 'latin1');
      },
    };
  }

  #drained(): void {
    const body = this.#request?.body ?? null;
    if (body !== null && !Buffer.isBuffer(body)) body.resume();
  }

  /** What came, in order. */
  take(bytes: Buffer): void {
    const reader = this.#reader;
    const request = this.#request;
    // Bytes that nobody asked for.
    if (reader === null || request === null) {
      this.#leave();
      return;
    }
    try {
      reader.push(bytes);
    } catch (error) {
      this.#broke(error instanceof Error ? error : closed());
      return;
    }
    // Whoever hears of it may have ended it.
    if (this.#request === request && reader.isDone) this.#answered(request, reader.keptMs);
  }

  #answered(request: SentRequest, keptMs: number): void {
    this.#request = null;
    this.#reader = null;
    this.#answers += 1;
    this.#unpause();
    const isFree = keptMs > 0 && this.#isBodySent && !this.#isGone && this.#socket.writable;
    if (isFree) this.#owner.free(this, keptMs);
    else this.#leave();
    request.ended();
  }

  #ended(): void {
    const [reader, request] = [this.#reader, this.#request];
    if (reader === null || request === null) {
      this.#leave();
      return;
    }
    try {
      reader.end();
    } catch (error) {
      this.#broke(this.#error ?? (error instanceof Error ? error : closed()));
      return;
    }
    this.#answered(request, 0);
  }

  #broke(error: Error): void {
    const [reader, request] = [this.#reader, this.#request];
    this.#request = null;
    this.#reader = null;
    this.#leave();
    if (request === null) return;
    const isStale = this.#answers > 0 && reader?.hasBegun !== true;
    request.broke({ error, isStale });
  }

  #unpause(): void {
    if (!this.#isPaused) return;
    this.#isPaused = false;
    this.#socket.resume();
  }

  #leave(): void {
    if (this.#isGone) return;
    this.#isGone = true;
    this.#socket.destroy();
    this.#owner.gone(this);
  }
}

function closed(): UpstreamError {
  return new UpstreamError('CONNECTION_CLOSED', 'the connection was closed');
}
