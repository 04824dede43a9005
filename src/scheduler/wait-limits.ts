import type { Clock } from '../core/clock.ts';

/** An alarm that is a little late does no harm; many that come one by one would. */
const shortestMs = 10;

/** Timers cannot wait for longer; the alarm then looks and waits on. */
const longestMs = 2 ** 31 - 1;

/** Deadlines of everything that waits, with one timer for all of them. */
export class WaitLimits {
  readonly #deadlines = new Map<string, number>();
  readonly #clock: Clock;
  readonly #onOver: (id: string) => void;
  #next = Infinity;
  #timer: AbortController | null = null;
  #isClosed = false;

  constructor(clock: Clock, onOver: (id: string) => void) {
    this.#clock = clock;
    this.#onOver = onOver;
  }

  /** `atMs` on the monotonic clock. */
  set(id: string, atMs: number): void {
    if (this.#isClosed) return;
    this.#deadlines.set(id, atMs);
    if (atMs < this.#next) this.#arm(atMs);
  }

  clear(id: string): void {
    this.#deadlines.delete(id);
  }

  /** Nothing rings any more, whatever is set. */
  close(): void {
    this.#isClosed = true;
    this.#deadlines.clear();
    this.#timer?.abort();
  }

  #arm(atMs: number): void {
    this.#timer?.abort();
    const timer = new AbortController();
    this.#timer = timer;
    this.#next = atMs;
    const left = atMs - this.#clock.monotonicMs();
    this.#clock.sleep(Math.min(longestMs, Math.max(shortestMs, left)), timer.signal).then(
      () => this.#ring(),
      () => undefined,
    );
  }

  #ring(): void {
    this.#next = Infinity;
    const now = this.#clock.monotonicMs();
    let next = Infinity;
    const over: string[] = [];
    for (const [id, atMs] of this.#deadlines)
      if (atMs <= now) over.push(id);
      else next = Math.min(next, atMs);
    for (const id of over) this.#deadlines.delete(id);
    if (next !== Infinity) this.#arm(next);
    for (const id of over) this.#onOver(id);
  }
}
