/**
 * Cleans up after runs that died: first what their journals name, then what carries labels of this state folder without a live run.
 * Never touched: sandboxes of another state folder, but for those of a provider that are past their expiry, and sandboxes of a run that holds its lock. A run is forgotten only when all it
 * named is gone; otherwise its journal stays for the next attempt.
 */
import type { Clock } from '../../core/clock.ts';
import { isRolloutError, messageOf, RolloutError } from '../../core/errors.ts';
import { Limiter } from '../../core/limiter.ts';
import { LinkedAbort } from '../../core/linked-abort.ts';
import type { Logger } from '../../core/logger.ts';
import type { DeadRun, SandboxEntry, SandboxJournalStore } from '../../store/sandbox-journal.ts';
import type { EnvironmentProvider, FoundSandbox } from '../environment.ts';
import { sweepByLabel } from './label-sweep.ts';

export interface ReapOptions {
  readonly journals: SandboxJournalStore;
  /** Preflighted providers by kind. A run whose provider is missing is kept for a later attempt. */
  readonly providers: ReadonlyMap<string, EnvironmentProvider>;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly signal: AbortSignal;
  /** Limit for all of it. What is not done by then is in `failed`. */
  readonly deadlineMs: number;
}

export interface ReapFailure {
  readonly name: string;
  readonly error: RolloutError;
}

export interface ReapReport {
  /** Ids of the dead runs that were found. */
  readonly runs: readonly string[];
  /** Names of sandboxes that are gone now. */
  readonly removed: readonly string[];
  readonly failed: readonly ReapFailure[];
  /** Past their expiry, but of another state folder: reported, not touched. */
  readonly expiredForeign: readonly FoundSandbox[];
}

/** Removals under way at once: here they are work of this machine, at a provider only a wait. */
const concurrency = { here: 8, remote: 64 } as const;

/** A create call that a killed run had sent may still be at work in a daemon for this long. */
const createInFlightMs = 3_000;
const lookAgainEveryMs = 750;

/** An intent older than this cannot have a create call in flight any more: images are built within it. */
const youngIntentMs = 30 * 60_000;

/** Rejects only with the reason of `signal`, or when no journal can be read at all. */
export async function reapDeadRuns(options: ReapOptions): Promise<ReapReport> {
  using limit = new LinkedAbort([options.signal], {
    ms: options.deadlineMs,
    reason: () => deadlinePassed(options.deadlineMs),
  });
  const reaping = new Reaping(options, limit.signal);
  const dead = await options.journals.deadRuns();
  try {
    await Promise.all(dead.map((run) => reaping.reapRun(run)));
    options.signal.throwIfAborted();
    const runs = dead.map(({ owner }) => owner.runId);
    const swept = await sweepByLabel(reaping, options, runs);
    options.signal.throwIfAborted();
    return reaping.report(runs, swept.expiredForeign);
  } finally {
    for (const run of dead) run.release();
  }
}

/** One cleaning: what was removed, what was not, and the removal itself. */
export class Reaping {
  readonly #options: ReapOptions;
  readonly #here = new Limiter(concurrency.here);
  readonly #remote = new Limiter(concurrency.remote);
  readonly #removed = new Set<string>();
  readonly #failed = new Map<string, ReapFailure>();
  readonly #endsAtMs: number;
  readonly signal: AbortSignal;

  constructor(options: ReapOptions, signal: AbortSignal) {
    this.#options = options;
    this.signal = signal;
    this.#endsAtMs = options.clock.monotonicMs() + options.deadlineMs;
  }

  async reapRun(run: DeadRun): Promise<void> {
    const { runId } = run.owner;
    const results = await Promise.all(run.open.map((entry) => this.#reapEntry(run, entry)));
    if (run.damage !== null) this.fail(runId, run.damage);
    else if (results.every(Boolean)) await this.#attempt(runId, () => run.forget());
  }

  /** Whether the sandbox is gone. */
  async remove(kind: string, name: string): Promise<boolean> {
    const isRemote = this.#options.providers.get(kind)?.isRemote === true;
    const limiter = isRemote ? this.#remote : this.#here;
    return await this.#attempt(name, () =>
      limiter.run(this.signal, () => this.#removeOnce(kind, name)),
    );
  }

  wasTried(name: string): boolean {
    return this.#removed.has(name) || this.#failed.has(name);
  }

  fail(name: string, error: unknown): void {
    const typed = isRolloutError(error)
      ? error
      : new RolloutError('ENVIRONMENT_DESTROY_FAILED', `${name}: ${messageOf(error)}`, {
          phase: 'cleanup',
          cause: error,
        });
    this.#failed.set(name, { name, error: typed });
    this.#options.logger.log('warn', 'cleaning up failed', { name, cause: typed.describe() });
  }

  report(runs: readonly string[], expiredForeign: readonly FoundSandbox[]): ReapReport {
    const [removed, failed] = [[...this.#removed].sort(), [...this.#failed.values()]];
    return { runs, removed, failed, expiredForeign };
  }

  async #reapEntry(run: DeadRun, entry: SandboxEntry): Promise<boolean> {
    const { name, provider } = entry;
    if (!(await this.remove(provider, name))) return false;
    if (entry.state === 'intended' && !(await this.#lookAgain(entry))) return false;
    return await this.#attempt(name, () => run.gone(name));
  }

  /** Removes by the same name again until no create call of the dead run can bring it back. */
  async #lookAgain(entry: SandboxEntry): Promise<boolean> {
    const { clock } = this.#options;
    const ageMs = clock.now().getTime() - Date.parse(entry.intendedAt);
    if (ageMs > youngIntentMs) return true;
    const until = clock.monotonicMs() + createInFlightMs;
    while (clock.monotonicMs() < until) {
      const isPausing = await this.#attempt(entry.name, () =>
        clock.sleep(lookAgainEveryMs, this.signal),
      );
      if (!isPausing || !(await this.remove(entry.provider, entry.name))) return false;
    }
    return true;
  }

  async #removeOnce(kind: string, name: string): Promise<void> {
    const provider = this.#options.providers.get(kind);
    if (provider === undefined) throw providerMissing(kind, name);
    const deadlineMs = Math.max(1, this.#endsAtMs - this.#options.clock.monotonicMs());
    await provider.destroyByName(name, { deadlineMs });
    this.#removed.add(name);
  }

  async #attempt(name: string, work: () => Promise<void>): Promise<boolean> {
    try {
      await work();
      return true;
    } catch (error) {
      this.#removed.delete(name);
      this.fail(name, error);
      return false;
    }
  }
}

function deadlinePassed(deadlineMs: number): RolloutError {
  const message = `cleaning up after dead runs took longer than ${deadlineMs} ms`;
  return new RolloutError('ENVIRONMENT_DESTROY_FAILED', message, { phase: 'cleanup' });
}

function providerMissing(kind: string, name: string): RolloutError {
  const message = `${name} was made by the environment '${kind}', which is not available now`;
  return new RolloutError('ENVIRONMENT_UNAVAILABLE', message, {
    phase: 'cleanup',
    remedy: `Start its runtime, then run 'slipway cleanup'.`,
  });
}
