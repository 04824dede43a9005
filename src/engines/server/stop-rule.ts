import type { SamplingParams } from '../engine.ts';
import type { Vocabulary } from './token-model.ts';

/**
 * The text of sampled ids as it grows, and where a stop rule of the caller's cuts it. The end token and stop ids end a reply without being
 * part of its text; a stop string is cut off its end.
 */
export class OutputText {
  readonly #vocabulary: Vocabulary;
  readonly #stopIds: ReadonlySet<number>;
  readonly #stops: readonly string[];
  readonly #longestStop: number;
  // A byte order mark is text that was sampled.
  readonly #decoder = new TextDecoder('utf-8', { ignoreBOM: true });
  #text = '';
  #match: number | string | null = null;
  #isDone = false;

  constructor(vocabulary: Vocabulary, sampling: SamplingParams) {
    this.#vocabulary = vocabulary;
    this.#stopIds = new Set(sampling.stopTokenIds);
    this.#stops = (sampling.stop ?? []).filter((stop) => stop !== '');
    this.#longestStop = Math.max(0, ...this.#stops.map((stop) => stop.length));
  }

  /** All of it, without the end token or stop id; incomplete UTF-8 at its end is held back until `end`. */
  get text(): string {
    return this.#text;
  }

  /** What ended the reply: an id or a string; null = no stop rule has. */
  get match(): number | string | null {
    return this.#match;
  }

  /** Whether this id ends a reply whatever stands before it. */
  isStopId(id: number): boolean {
    return this.#vocabulary.isEnd(id) || this.#stopIds.has(id);
  }

  /** Takes the next id; true when it ends the reply. */
  push(id: number): boolean {
    if (this.#match !== null) return true;
    if (this.isStopId(id)) {
      this.#match = id;
      return true;
    }
    const from = Math.max(0, this.#text.length - this.#longestStop);
    this.#text += this.#decoder.decode(this.#vocabulary.bytesOf(id), { stream: true });
    const found = this.#stops.filter((stop) => this.#text.includes(stop, from));
    this.#match = found.sort((a, b) => this.#text.indexOf(a) - this.#text.indexOf(b))[0] ?? null;
    return this.#match !== null;
  }

  /** No id follows: bytes that are no character become the replacement character. */
  end(): void {
    if (this.#isDone) return;
    this.#isDone = true;
    this.#text += this.#decoder.decode();
  }

  /** How much of the text may be shown: never a part of what may yet become a stop string. */
  get shownLength(): number {
    const { length } = this.#text;
    if (typeof this.#match === 'string') return this.#text.indexOf(this.#match);
    if (this.#isDone || this.#stops.length === 0) return length;
    for (let held = Math.min(length, this.#longestStop - 1); held > 0; held -= 1) {
      const tail = this.#text.slice(length - held);
      if (this.#stops.some((stop) => stop.startsWith(tail))) return length - held;
    }
    return length;
  }
}
