import { StringDecoder } from 'node:string_decoder';

/** One output stream of a command: keeps the first bytes, passes all of them on as text. */
export class CapturedOutput {
  readonly #limit: number;
  readonly #onText: (text: string) => void;
  readonly #decoder = new StringDecoder('utf8');
  readonly #kept: Buffer[] = [];
  #keptBytes = 0;
  #isTruncated = false;

  constructor(limit: number, onText: (text: string) => void) {
    this.#limit = limit;
    this.#onText = onText;
  }

  get isTruncated(): boolean {
    return this.#isTruncated;
  }

  write(bytes: Buffer): void {
    if (bytes.length === 0) return;
    const kept = bytes.subarray(0, Math.max(0, this.#limit - this.#keptBytes));
    if (kept.length < bytes.length) this.#isTruncated = true;
    if (kept.length > 0) this.#kept.push(Buffer.from(kept)); // a copy: the chunk's own buffer is pooled
    this.#keptBytes += kept.length;
    this.#emit(this.#decoder.write(bytes));
  }

  end(): void {
    this.#emit(this.#decoder.end());
  }

  text(): string {
    return Buffer.concat(this.#kept).toString('utf8');
  }

  #emit(text: string): void {
    if (text !== '') this.#onText(text);
  }
}
