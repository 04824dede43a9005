import type { Clock } from '../../src/core/clock.ts';

/** A clock whose sleepers wake at once while time jumps ahead, so that waiting costs a test nothing. */
export class JumpingClock implements Clock {
  #ms: number;

  constructor(start = new Date('2030-01-01T00:00:00.000Z')) {
    this.#ms = start.getTime();
  }

  now(): Date {
    return new Date(this.#ms);
  }

  monotonicMs(): number {
    return this.#ms;
  }

  async sleep(ms: number, signal: AbortSignal): Promise<void> {
    signal.throwIfAborted();
    await new Promise(setImmediate);
    signal.throwIfAborted();
    this.#ms += ms;
  }
}
