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
  /** The end of the text, as long as a part of a stop string may be: a search of the whole would cost more with each id. */
  #tail = '';
  #match: number | string | null = null;
  /** Where a stop string that matched begins. */
  #matchAt = 0;
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
    const added = this.#decoder.decode(this.#vocabulary.bytesOf(id), { stream: true });
    this.#text += added;
    return this.#stops.length > 0 && this.#isStopped(this.#tail + added);
  }

  /** The stop string that begins first ends the reply. */
  #isStopped(end: string): boolean {
    const found = this.#stops.filter((stop) => end.includes(stop));
    const first = found.sort((a, b) => end.indexOf(a) - end.indexOf(b))[0];
    if (first !== undefined) {
      this.#match = first;
      this.#matchAt = this.#text.length - end.length + end.indexOf(first);
    }
    this.#tail = end.slice(Math.max(0, end.length - this.#longestStop + 1));
    return first !== undefined;
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
    if (typeof this.#match === 'string') return this.#matchAt;
    if (this.#isDone) return length;
    for (let held = this.#tail.length; held > 0; held -= 1) {
      const end = this.#tail.slice(-held);
      if (this.#stops.some((stop) => stop.startsWith(end))) return length - held;
    }
    return length;
  }
}
