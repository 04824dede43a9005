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

const kept = 64;
const fewLatest = 16;

/** How fast places become free when there is enough to do, from the latest times at which one did. Time with too little to do does not count. */
export class DrainRate {
  readonly #times: number[] = [];
  #busyMs = 0;
  #since: number | null = null;

  /** There is enough to do from now on, or too little. */
  setBusy(isBusy: boolean, nowMs: number): void {
    this.#busyMs = this.#at(nowMs);
    this.#since = isBusy ? nowMs : null;
  }

  /** A place became free; counts only while there is enough to do. */
  add(nowMs: number): void {
    if (this.#since === null) return;
    this.#times.push(this.#at(nowMs));
    if (this.#times.length > kept) this.#times.shift();
  }

  /** For how long there has been enough to do, in all. */
  observedMs(nowMs: number): number {
    return this.#at(nowMs);
  }

  /** Places per second; null = too few became free to tell. A standstill makes it fall, a start from one makes it rise at once. */
  perSecond(nowMs: number): number | null {
    if (this.#times.length < 2) return null;
    return Math.max(this.#rate(kept, nowMs), this.#rate(fewLatest, nowMs));
  }

  #rate(count: number, nowMs: number): number {
    const latest = this.#times.slice(-count);
    // Many in one instant say nothing about how fast: as if they had taken ten milliseconds.
    return ((latest.length - 1) * 1000) / Math.max(10, this.#at(nowMs) - (latest[0] ?? 0));
  }

  #at(nowMs: number): number {
    return this.#busyMs + (this.#since === null ? 0 : nowMs - this.#since);
  }
}

/** Whole seconds, from 1 to 60. */
export function waitS(seconds: number): number {
  return Math.max(1, Math.min(longestS, Math.ceil(seconds)));
}
