import { raceSignal } from '../core/race-signal.ts';
import type { Clock } from '../core/clock.ts';
import type { RolloutError } from '../core/errors.ts';
import { LinkedAbort } from '../core/linked-abort.ts';
import { childDeadline, remainingMs, rootDeadline, type Deadline, type Span } from './deadlines.ts';

/** What one trial is busy with: its clock, which stands still while it waits for a place, and the work it has begun. */
export class TrialWork {
  readonly #clock: Clock;
  readonly #begun = new Set<Promise<unknown>>();
  #queuedMs = 0;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  nowMs(): number {
    return this.#clock.monotonicMs() - this.#queuedMs;
  }

  /** Runs a wait for a place. What it takes is nobody's time; it is answered in milliseconds. */
  async queue<T>(wait: () => Promise<T>): Promise<{ readonly value: T; readonly ms: number }> {
    const since = this.#clock.monotonicMs();
    try {
      const value = await wait();
      return { value, ms: this.#clock.monotonicMs() - since };
    } finally {
      this.#queuedMs += this.#clock.monotonicMs() - since;
    }
  }

  /** Counts work until it settles, also after whoever waited for it has gone. */
  track(work: Promise<unknown>): void {
    this.#begun.add(work);
    const forget = (): void => {
      this.#begun.delete(work);
    };
    work.then(forget, forget);
  }

  /** Waits until all begun work has settled and answers how much has not within the limit. */
  async settled(limitMs: number): Promise<number> {
    using limit = new LinkedAbort([], { ms: limitMs, reason: () => new Error('still busy') });
    await raceSignal(Promise.allSettled(this.#begun), limit.signal).catch(() => undefined);
    return this.#begun.size;
  }
}

/** Work that has to end within a limit. */
export interface LimitedWork<T> {
  readonly signal: AbortSignal;
  /** The error that ends the work; it gets the limit in milliseconds. */
  readonly expired: (limitMs: number) => RolloutError;
  readonly work: (signal: AbortSignal, limitMs: number) => Promise<T>;
}

/** An open span of the deadline tree: opens its children and bounds the work done in them. */
export class DeadlineScope {
  readonly #deadline: Deadline;
  readonly #work: TrialWork;

  private constructor(deadline: Deadline, work: TrialWork) {
    this.#deadline = deadline;
    this.#work = work;
  }

  static open(span: Span, work: TrialWork, ceilingMs: number | null): DeadlineScope {
    return new DeadlineScope(rootDeadline(span, work.nowMs(), ceilingMs), work);
  }

  child(name: string): DeadlineScope {
    return new DeadlineScope(childDeadline(this.#deadline, name, this.#work.nowMs()), this.#work);
  }

  /** Infinity without a limit. */
  get remainingMs(): number {
    return remainingMs(this.#deadline, this.#work.nowMs());
  }

  /**
   * Runs work in the child of this name. At its limit the work's signal fires with the error that `expired` makes, and the call rejects with it at
   * once, whether or not the work reacts: no stage can outlive its span.
   */
  async within<T>(name: string, { signal, expired, work }: LimitedWork<T>): Promise<T> {
    signal.throwIfAborted();
    const limitMs = this.child(name).remainingMs;
    // What is left of a limit when its work begins is a fraction of a millisecond less than the limit.
    const expire = (): RolloutError => expired(Math.round(limitMs));
    using link = new LinkedAbort([signal], { ms: limitMs, reason: expire });
    const begun = work(link.signal, limitMs);
    this.#work.track(begun);
    return await raceSignal(begun, link.signal);
  }
}
