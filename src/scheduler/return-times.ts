/** Beyond this nobody is sent away for; clients that ask for less than a second come back in the next one. */
const longestS = 60;

/** When clients that were sent away are to come back, by whole seconds: as many counters as seconds, however many clients there are. */
export class ReturnTimes {
  readonly #bySecond = new Map<number, number>();
  #count = 0;

  /** All that have not come and are not forgotten. */
  get count(): number {
    return this.#count;
  }

  add(atMs: number): void {
    const second = Math.ceil(atMs / 1000);
    this.#bySecond.set(second, (this.#bySecond.get(second) ?? 0) + 1);
    this.#count += 1;
  }

  /** Those that are to come after `ms`. */
  countAfter(ms: number): number {
    let count = 0;
    for (const [second, clients] of this.#bySecond) if (second * 1000 > ms) count += clients;
    return count;
  }

  /** One came: the oldest that was awaited. */
  arrived(): void {
    const oldest = Math.min(...this.#bySecond.keys());
    const clients = this.#bySecond.get(oldest);
    if (clients === undefined) return;
    this.#count -= 1;
    if (clients > 1) this.#bySecond.set(oldest, clients - 1);
    else this.#bySecond.delete(oldest);
  }

  forgetBefore(ms: number): void {
    for (const [second, clients] of this.#bySecond)
      if (second * 1000 < ms) {
        this.#bySecond.delete(second);
        this.#count -= clients;
      }
  }
}

/** How fast places become free, from the latest times at which one did. */
export class DrainRate {
  readonly #times: number[] = [];
  readonly #kept: number;

  constructor(kept = 64) {
    this.#kept = kept;
  }

  add(ms: number): void {
    this.#times.push(ms);
    if (this.#times.length > this.#kept) this.#times.shift();
  }

  /** Places per second until `ms`; null = too few became free to tell. A standstill makes it fall. */
  perSecond(ms: number): number | null {
    const [oldest] = this.#times;
    if (oldest === undefined || this.#times.length < 2) return null;
    // Many in one instant say nothing about how fast: as if they had taken ten milliseconds.
    return ((this.#times.length - 1) * 1000) / Math.max(10, ms - oldest);
  }
}

/** Whole seconds, from 1 to 60. */
export function waitS(seconds: number): number {
  return Math.max(1, Math.min(longestS, Math.ceil(seconds)));
}
