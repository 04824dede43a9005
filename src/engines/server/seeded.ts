/** Seeded numbers: the same parts give the same sequence on every machine, so that a run of the engine can be repeated. */

/** Mixes a number into a 32-bit state; every bit of the input moves every bit of the result. */
export function mix(state: number, value: number): number {
  let mixed = Math.imul(state ^ value, 0x9e3779b1);
  mixed = Math.imul(mixed ^ (mixed >>> 16), 0x85ebca6b);
  mixed = Math.imul(mixed ^ (mixed >>> 13), 0xc2b2ae35);
  return (mixed ^ (mixed >>> 16)) >>> 0;
}

/** Numbers in [0, 1). */
export function seededRandom(...parts: readonly number[]): () => number {
  const state = parts.reduce(mix, 0x51ed270b);
  let count = 0;
  return () => mix(state, ++count) / 2 ** 32;
}

/** A running hash of ids in two lanes: equal only for equal prefixes, as far as any run will see. */
export class PrefixHash {
  #low = 0x243f6a88;
  #high = 0x85a308d3;

  push(id: number): void {
    this.#low = mix(this.#low, id + 1);
    this.#high = mix(this.#high + 0x7f4a7c15, id + 1);
  }

  get low(): number {
    return this.#low;
  }

  /** 52 bits, exact in a number. */
  get key(): number {
    return this.#low * 2 ** 20 + (this.#high >>> 12);
  }

  static of(ids: readonly number[]): PrefixHash {
    const hash = new PrefixHash();
    for (const id of ids) hash.push(id);
    return hash;
  }
}

/** Counts how often a key was seen; forgets the oldest keys beyond its bound. */
export class SeenCounter {
  readonly #seen = new Map<number, number>();
  readonly #bound: number;

  constructor(bound = 100_000) {
    this.#bound = bound;
  }

  /** 0 for the first time. */
  next(key: number): number {
    const before = this.#seen.get(key) ?? 0;
    this.#seen.delete(key);
    this.#seen.set(key, before + 1);
    if (this.#seen.size > this.#bound)
      for (const oldest of this.#seen.keys()) {
        this.#seen.delete(oldest);
        break;
      }
    return before;
  }
}
