/** Keeps what was used last, up to a total weight. An entry heavier than the whole budget is not kept. */
export class WeightedCache<V> {
  readonly #budget: number;
  readonly #weightOf: (key: string, value: V) => number;
  readonly #entries = new Map<string, V>();
  #weight = 0;

  constructor(budget: number, weightOf: (key: string, value: V) => number) {
    this.#budget = budget;
    this.#weightOf = weightOf;
  }

  get weight(): number {
    return this.#weight;
  }

  get(key: string): V | undefined {
    const value = this.#entries.get(key);
    if (value === undefined) return undefined;
    this.#entries.delete(key);
    this.#entries.set(key, value);
    return value;
  }

  /** Adds a value whose key is not here yet. */
  add(key: string, value: V): void {
    const weight = this.#weightOf(key, value);
    if (weight > this.#budget) return;
    this.#entries.set(key, value);
    this.#weight += weight;
    for (const [oldest, dropped] of this.#entries) {
      if (this.#weight <= this.#budget) break;
      this.#entries.delete(oldest);
      this.#weight -= this.#weightOf(oldest, dropped);
    }
  }
}
