import type { Clock } from '../../src/core/clock.ts';

interface Sleeper {
  readonly atMs: number;
  readonly ms: number;
  readonly wake: () => void;
}

/** A clock that stands still until a test moves it. */
export class ManualClock implements Clock {
  #ms: number;
  readonly #sleepers = new Set<Sleeper>();

  constructor(start = new Date('2030-01-01T00:00:00.000Z')) {
    this.#ms = start.getTime();
  }

  /** How long each sleeper wanted to sleep, the first to wake first. */
  get pauses(): readonly number[] {
    return this.#byTime().map(({ ms }) => ms);
  }

  now(): Date {
    return new Date(this.#ms);
  }

  monotonicMs(): number {
    return this.#ms;
  }

  async sleep(ms: number, signal: AbortSignal): Promise<void> {
    signal.throwIfAborted();
    const woken = Promise.withResolvers<undefined>();
    const sleeper = { ms, atMs: this.#ms + ms, wake: () => woken.resolve(undefined) };
    const leave = (): void => woken.reject(signal.reason as Error);
    this.#sleepers.add(sleeper);
    signal.addEventListener('abort', leave, { once: true });
    try {
      await woken.promise;
    } finally {
      this.#sleepers.delete(sleeper);
      signal.removeEventListener('abort', leave);
    }
  }

  /** Moves time on and wakes whose time has come. */
  advance(ms: number): void {
    this.#ms += ms;
    for (const sleeper of this.#byTime()) {
      if (sleeper.atMs > this.#ms) break;
      this.#sleepers.delete(sleeper);
      sleeper.wake();
    }
  }

  #byTime(): readonly Sleeper[] {
    return [...this.#sleepers].sort((a, b) => a.atMs - b.atMs);
  }
}
