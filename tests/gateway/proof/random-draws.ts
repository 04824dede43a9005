import { seededRandom } from '../../support/random.ts';

/** Seeded choices. */
export class RandomDraws {
  readonly #random: () => number;

  constructor(seed: number) {
    this.#random = seededRandom(seed);
  }

  /** From 0, less than `limit`. */
  below(limit: number): number {
    return Math.floor(this.#random() * limit);
  }

  pick<Value>(values: readonly Value[]): Value {
    return values[this.below(values.length)] as Value;
  }

  chance(of: number): boolean {
    return this.#random() < of;
  }
}
