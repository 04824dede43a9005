import type { Clock } from '../../core/clock.ts';

/**
 * Remembers failures by key for a while, so that eight trials of a task whose image does not build cost one build. A failure
 * that may pass (`retryable`) should not be remembered: that is the caller's choice.
 */
export class NegativeCache<Failure> {
  readonly #ttlMs: number;
  readonly #clock: Clock;
  readonly #maxEntries: number;
  readonly #failures = new Map<string, { readonly failure: Failure; readonly untilMs: number }>();

  constructor(options: {
    readonly ttlMs: number;
    readonly clock: Clock;
    /** Oldest entries go first beyond this many; default 1000. */
    readonly maxEntries?: number;
  }) {
    this.#ttlMs = options.ttlMs;
    this.#clock = options.clock;
    this.#maxEntries = options.maxEntries ?? 1000;
  }

  /** The remembered failure, or null when there is none or it is too old. */
  get(key: string): Failure | null {
    const entry = this.#failures.get(key);
    if (entry === undefined) return null;
    if (this.#clock.monotonicMs() < entry.untilMs) return entry.failure;
    this.#failures.delete(key);
    return null;
  }

  remember(key: string, failure: Failure): void {
    this.#failures.delete(key); // re-inserted at the end: the map's order is the order of age
    this.#failures.set(key, { failure, untilMs: this.#clock.monotonicMs() + this.#ttlMs });
    for (const oldest of this.#failures.keys()) {
      if (this.#failures.size <= this.#maxEntries) break;
      this.#failures.delete(oldest);
    }
  }
}
