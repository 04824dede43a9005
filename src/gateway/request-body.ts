/**
 * The body of a request on its way upstream: bytes as they come, no faster than upstream takes them, counted against the limit. It stands between
 * the two connections so that the end of one does not tear the other.
 */
import type { IncomingMessage } from 'node:http';
import { Readable } from 'node:stream';

export class RequestBody extends Readable {
  readonly #request: IncomingMessage;
  readonly #limit: number;
  readonly #onTooLarge: () => void;
  #size = 0;
  #isOver = false;

  constructor(
    request: IncomingMessage,
    options: { readonly limitBytes: number; readonly onTooLarge: () => void },
  ) {
    super();
    this.#request = request;
    this.#limit = options.limitBytes;
    this.#onTooLarge = options.onTooLarge;
    request.pause();
    request.on('data', (chunk: Buffer) => this.#take(chunk));
    request.on('end', () => this.#finish(null));
  }

  override _read(): void {
    if (!this.#isOver) this.#request.resume();
  }

  /** What is left of the request is read and forgotten, so that the answer can be sent and the connection used again. */
  override _destroy(error: Error | null, done: (error?: Error | null) => void): void {
    this.#isOver = true;
    this.#request.resume();
    done(error);
  }

  #take(chunk: Buffer): void {
    if (this.#isOver) return;
    this.#size += chunk.length;
    if (this.#size > this.#limit) {
      this.#isOver = true;
      this.#onTooLarge();
    } else if (!this.push(chunk)) this.#request.pause();
  }

  #finish(last: null): void {
    if (!this.#isOver) this.push(last);
  }
}
