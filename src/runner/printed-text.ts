/**
 * What a runner's code prints, told apart by order. The runner writes a mark after each order; the mark is taken out, and tells that all of the order's
 * text has come.
 */
import { StringDecoder } from 'node:string_decoder';

const tailLength = 4_000;

export class PrintedText {
  readonly #decoder = new StringDecoder('utf8');
  readonly #mark: RegExp;
  readonly #longestMark: number;
  readonly #onText: (text: string) => void;
  #held = '';
  #tail = '';
  #ended = 0;
  #waiting: { readonly order: number; readonly resolve: () => void }[] = [];

  constructor(mark: string, onText: (text: string) => void) {
    this.#mark = new RegExp(`\\0${mark}:(\\d{1,15})\\0`);
    this.#longestMark = mark.length + 18;
    this.#onText = onText;
  }

  /** The last that was printed. */
  get tail(): string {
    return this.#tail;
  }

  push(chunk: Buffer): void {
    this.#held += this.#decoder.write(chunk);
    for (let found = this.#mark.exec(this.#held); found; found = this.#mark.exec(this.#held)) {
      this.#say(this.#held.slice(0, found.index));
      this.#held = this.#held.slice(found.index + found[0].length);
      this.#end(Number(found[1]));
    }
    // What may be the beginning of a mark waits for the rest.
    const at = this.#held.lastIndexOf('\0');
    const isBegun = at !== -1 && this.#held.length - at < this.#longestMark;
    this.#say(isBegun ? this.#held.slice(0, at) : this.#held);
    this.#held = isBegun ? this.#held.slice(at) : '';
  }

  /** Resolves when all that was printed during the order has been heard. */
  async heard(order: number): Promise<void> {
    if (order <= this.#ended) return;
    await new Promise<void>((resolve) => this.#waiting.push({ order, resolve }));
  }

  /** Nothing comes any more. */
  end(): void {
    this.#say(this.#held + this.#decoder.end());
    this.#held = '';
    this.#end(Infinity);
  }

  #end(order: number): void {
    this.#ended = Math.max(this.#ended, order);
    const due = this.#waiting.filter((one) => one.order <= this.#ended);
    this.#waiting = this.#waiting.filter((one) => one.order > this.#ended);
    for (const { resolve } of due) resolve();
  }

  #say(text: string): void {
    if (text === '') return;
    this.#tail = (this.#tail + text).slice(-tailLength);
    this.#onText(text);
  }
}
