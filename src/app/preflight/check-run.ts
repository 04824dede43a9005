/**
 * Makes checks one after the other or side by side: each within its limit, each told when it begins and when it has ended. A check that does not heed
 * its limit is left behind, and waited for at the end, so that what it was making is gone before the process is.
 */
import type { Clock } from '../../core/clock.ts';
import { RolloutError } from '../../core/errors.ts';
import { LinkedAbort } from '../../core/linked-abort.ts';
import { raceSignal } from '../../core/race-signal.ts';
import {
  preflightChecks,
  type PreflightCheckName,
  type PreflightReport,
  type PreflightResult,
  type PreflightStatus,
} from '../../wire/preflight-report.ts';
import { failedWith, skipped, type Verdict } from './verdict.ts';

export interface CheckObserver {
  readonly began?: (name: PreflightCheckName, subject: string | null) => void;
  readonly ended?: (result: PreflightResult) => void;
}

export interface Check {
  readonly name: PreflightCheckName;
  readonly subject?: string;
  readonly limitMs: number;
  readonly work: (signal: AbortSignal) => Promise<Verdict>;
}

/** For checks that did not heed their limit. */
const settleMs = 60_000;

export class CheckRun {
  readonly #clock: Clock;
  readonly #signal: AbortSignal;
  readonly #observer: CheckObserver;
  readonly #mask: (text: string) => string;
  readonly #since: number;
  readonly #results: PreflightResult[] = [];
  readonly #late = new Set<Promise<unknown>>();

  constructor(options: {
    readonly clock: Clock;
    /** Ends the whole: `check` then rejects with its reason. */
    readonly signal: AbortSignal;
    readonly observer: CheckObserver;
    /** Takes known secrets out of what is told. */
    readonly mask: (text: string) => string;
  }) {
    this.#clock = options.clock;
    this.#signal = options.signal;
    this.#observer = options.observer;
    this.#mask = options.mask;
    this.#since = options.clock.monotonicMs();
  }

  /** Ends the whole. */
  get signal(): AbortSignal {
    return this.#signal;
  }

  /** Rejects only with the reason of the whole; what the check throws is its verdict. */
  async check({ name, limitMs, work, ...check }: Check): Promise<void> {
    const subject = check.subject ?? null;
    const signal = this.#signal;
    signal.throwIfAborted();
    this.#tell(() => this.#observer.began?.(name, subject));
    const since = this.#clock.monotonicMs();
    using limit = new LinkedAbort([signal], { ms: limitMs, reason: () => tooLong(limitMs) });
    const working = work(limit.signal);
    const forget = (): boolean => this.#late.delete(working);
    this.#late.add(working);
    working.then(forget, forget);
    const verdict = await raceSignal(working, limit.signal).catch(failedWith);
    signal.throwIfAborted();
    this.#add(verdict, { name, subject, since });
  }

  skip(name: PreflightCheckName, why: string, subject: string | null = null): void {
    this.#add(skipped(why), { name, subject, since: this.#clock.monotonicMs() });
  }

  /** Adds what another check found out on its way. */
  note(name: PreflightCheckName, subject: string | null, verdict: Verdict): void {
    this.#add(verdict, { name, subject, since: this.#clock.monotonicMs() });
  }

  /** Resolves when no check works any more, however it ended. */
  async settle(): Promise<void> {
    using limit = new LinkedAbort([], { ms: settleMs, reason: () => tooLong(settleMs) });
    await raceSignal(Promise.allSettled(this.#late), limit.signal).catch(() => undefined);
  }

  report(): PreflightReport {
    const count = (status: PreflightStatus): number =>
      this.#results.filter((result) => result.status === status).length;
    const order = (result: PreflightResult): number => preflightChecks.indexOf(result.name);
    return {
      schema_version: 1,
      ok: count('failed') === 0,
      counts: {
        ok: count('ok'),
        warning: count('warning'),
        failed: count('failed'),
        skipped: count('skipped'),
      },
      duration_ms: this.#msSince(this.#since),
      checks: this.#results.toSorted((a, b) => order(a) - order(b)),
    };
  }

  #add(
    verdict: Verdict,
    at: {
      readonly name: PreflightCheckName;
      readonly subject: string | null;
      readonly since: number;
    },
  ): void {
    const result: PreflightResult = {
      name: at.name,
      subject: at.subject === null ? null : this.#mask(at.subject),
      ...verdict,
      summary: this.#mask(verdict.summary),
      detail: verdict.detail === null ? null : this.#mask(verdict.detail),
      duration_ms: this.#msSince(at.since),
    };
    this.#results.push(result);
    this.#tell(() => this.#observer.ended?.(result));
  }

  /** Who only looks on breaks nothing. */
  #tell(tell: () => void): void {
    try {
      tell();
    } catch {
      return;
    }
  }

  #msSince(since: number): number {
    return Math.max(0, Math.round(this.#clock.monotonicMs() - since));
  }
}

function tooLong(limitMs: number): RolloutError {
  return new RolloutError('PREFLIGHT_TIMEOUT', `no end within ${limitMs / 1000} s`, {
    phase: 'config',
    remedy: 'See what does not answer: try the same thing by hand.',
  });
}
