import type { Vocabulary } from '../token-model.ts';

/** Turns ids into text as they arrive. A character split over several ids is held back until it is whole; bytes that are no UTF-8 become U+FFFD. */
export class IncrementalDecoder {
  readonly #vocabulary: Vocabulary;
  readonly #skipsSpecial: boolean;
  readonly #utf8 = new TextDecoder('utf-8', { ignoreBOM: true });

  constructor(vocabulary: Vocabulary, options: { readonly skipsSpecial: boolean }) {
    this.#vocabulary = vocabulary;
    this.#skipsSpecial = options.skipsSpecial;
  }

  /** The text that this id completes, often all of its own, sometimes none. */
  push(id: number): string {
    if (this.#skipsSpecial && this.#vocabulary.isSpecial(id)) return '';
    return this.#utf8.decode(this.#vocabulary.bytesOf(id), { stream: true });
  }

  /** What is still held back, as U+FFFD. The decoder may be used again. */
  end(): string {
    return this.#utf8.decode();
  }
}
