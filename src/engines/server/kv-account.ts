/**
 * The account of KV memory in tokens: what running requests hold, and whole blocks of finished text kept for reuse, least recently used first to
 * go. Running requests always win: blocks are dropped as soon as their room is needed. Nothing is stored but counts and hashes of prefixes.
 */
import { PrefixHash } from './seeded.ts';

const blockTokens = 16;

export class KvAccount {
  readonly capacityTokens: number;
  #held = 0;
  /** Hashes of prefixes that end at a block border, oldest first. */
  readonly #blocks = new Set<number>();

  constructor(capacityTokens: number) {
    this.capacityTokens = capacityTokens;
  }

  get heldTokens(): number {
    return this.#held;
  }

  get cachedTokens(): number {
    return this.#blocks.size * blockTokens;
  }

  get freeTokens(): number {
    return this.capacityTokens - this.#held;
  }

  hold(tokens: number): void {
    this.#held += tokens;
    this.#trim();
  }

  release(tokens: number): void {
    this.#held -= tokens;
  }

  /** Tokens of `ids` whose KV is here already. The last one is always computed: its output is what sampling needs. */
  reuse(ids: readonly number[]): number {
    const keys: number[] = [];
    for (const key of blockKeys(ids)) {
      if (!this.#blocks.has(key)) break;
      keys.push(key);
    }
    for (const key of keys) this.#touch(key);
    return Math.max(0, Math.min(keys.length * blockTokens, ids.length - 1));
  }

  keep(ids: readonly number[]): void {
    for (const key of blockKeys(ids)) this.#touch(key);
    this.#trim();
  }

  forget(): void {
    this.#blocks.clear();
  }

  #touch(key: number): void {
    this.#blocks.delete(key);
    this.#blocks.add(key);
  }

  #trim(): void {
    for (const oldest of this.#blocks) {
      if (this.#held + this.cachedTokens <= this.capacityTokens) return;
      this.#blocks.delete(oldest);
    }
  }
}

function* blockKeys(ids: readonly number[]): Iterable<number> {
  const hash = new PrefixHash();
  let count = 0;
  for (const id of ids) {
    hash.push(id);
    if (++count % blockTokens === 0) yield hash.key;
  }
}
