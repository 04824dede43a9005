import { systemClock, type Clock } from '../../src/core/clock.ts';

/** A clock on which time passes `rate` times as fast as outside. */
export class FastClock implements Clock {
  readonly #rate: number;
  readonly #beganAt = Date.now();
  readonly #beganMs = performance.now();

  constructor(rate: number) {
    this.#rate = rate;
  }

  now(): Date {
    return new Date(this.#beganAt + this.monotonicMs());
  }

  monotonicMs(): number {
    return (performance.now() - this.#beganMs) * this.#rate;
  }

  sleep(ms: number, signal: AbortSignal): Promise<void> {
    return systemClock.sleep(ms / this.#rate, signal);
  }
}
