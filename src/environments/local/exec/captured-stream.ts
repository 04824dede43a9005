import { StringDecoder } from 'node:string_decoder';
import type { Readable } from 'node:stream';

/** Reads a stream to its end, passes all of it on as text and keeps the first `limit` bytes. */
export class CapturedStream {
  readonly #chunks: Buffer[] = [];
  readonly #limit: number;
  #kept = 0;
  #isOver = false;
  #isListening = true;
  /** Milliseconds, monotonic, of the last byte. */
  lastByteAt = performance.now();

  constructor(
    stream: Readable,
    options: { readonly limit: number; readonly onText?: ((text: string) => void) | undefined },
  ) {
    this.#limit = options.limit;
    const decoder = new StringDecoder('utf8');
    stream.on('data', (chunk: Buffer) => {
      if (!this.#isListening) return;
      this.lastByteAt = performance.now();
      this.#keep(chunk);
      if (options.onText === undefined) return;
      const text = decoder.write(chunk);
      if (text !== '') options.onText(text);
    });
    stream.on('end', () => {
      const rest = decoder.end();
      if (this.#isListening && rest !== '') options.onText?.(rest);
    });
    stream.on('error', () => undefined);
  }

  get isTruncated(): boolean {
    return this.#isOver;
  }

  text(): string {
    return Buffer.concat(this.#chunks).toString('utf8');
  }

  /** What comes from now on is read and dropped. */
  ignoreRest(): void {
    this.#isListening = false;
  }

  #keep(chunk: Buffer): void {
    const room = this.#limit - this.#kept;
    if (chunk.length > room) this.#isOver = true;
    if (room <= 0) return;
    const part = chunk.subarray(0, room);
    this.#chunks.push(part);
    this.#kept += part.length;
  }
}
