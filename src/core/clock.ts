import { setTimeout as delay } from 'node:timers/promises';

/** Time as a port, so that tests control it. */
export interface Clock {
  /** Wall clock, for timestamps. */
  now(): Date;
  /** Milliseconds that never go backwards, for durations. */
  monotonicMs(): number;
  /** Resolves after `ms`; rejects with the reason of `signal` when it fires first. */
  sleep(ms: number, signal: AbortSignal): Promise<void>;
}

export const systemClock: Clock = {
  now: () => new Date(),
  monotonicMs: () => performance.now(),
  async sleep(ms, signal) {
    signal.throwIfAborted();
    try {
      await delay(ms, undefined, { signal });
    } catch (error) {
      signal.throwIfAborted();
      throw error;
    }
  },
};
