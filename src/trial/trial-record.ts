import type { Clock } from '../core/clock.ts';
import { attribute, isRolloutError, RolloutError, type Phase } from '../core/errors.ts';
import type { KillReceipt } from '../environments/environment.ts';
import type { AgentInfo, AgentResult, TimingInfo } from '../wire/harbor/trial-result.ts';
import { toHarborTime } from '../wire/harbor/dump.ts';
import type { CancellationReceipt, PhaseTimes } from '../wire/harbor/slipway-record.ts';
import type { Rewards } from '../verifier/reward-file.ts';

/** A failure and when it was noticed. */
export interface NotedFailure {
  readonly error: RolloutError;
  readonly at: Date;
  /** Stages that had begun until then, in order. */
  readonly trail: readonly string[];
}

/** What is known about one round: the only one of a single-step task, or one step. */
export class RoundRecord {
  failure: NotedFailure | null = null;
  agentResult: AgentResult | null = null;
  agentExecution: TimingInfo | null = null;
  verifierTiming: TimingInfo | null = null;
  /** null until a verifier ran to its end and its verdict was read. */
  rewards: Rewards | null = null;
  verifierExitCode: number | null = null;
  agentStop: KillReceipt | null = null;
}

/** The facts of one trial, written down as they happen; `result.ts` makes `result.json` of them. */
export class TrialRecord {
  readonly #clock: Clock;
  readonly startedAt: Date;
  finishedAt: Date | null = null;
  failure: NotedFailure | null = null;
  environmentSetup: TimingInfo | null = null;
  agentSetup: TimingInfo | null = null;
  readonly phaseTimes: PhaseTimes = {};
  readonly warnings: string[] = [];
  readonly rounds: { readonly step: string | null; readonly record: RoundRecord }[] = [];
  readonly trail: string[] = [];
  cancellation: CancellationReceipt | null = null;
  /** Kinds of things confirmed gone; null until everything is. */
  destroyed: ReadonlySet<string> | null = null;
  /** Of the trial that is graded again: its agent did the work. */
  source: { readonly agentInfo: AgentInfo; readonly agentResult: AgentResult | null } | null = null;
  phase: Phase = 'queue';

  constructor(clock: Clock) {
    this.#clock = clock;
    this.startedAt = clock.now();
  }

  openRound(step: string | null): RoundRecord {
    const record = new RoundRecord();
    this.rounds.push({ step, record });
    return record;
  }

  note(error: unknown): NotedFailure {
    const known = isRolloutError(error)
      ? error
      : attribute(error, 'INTERNAL', this.phase, 'a defect ended the trial');
    return { error: known, at: this.#clock.now(), trail: [...this.trail] };
  }

  /** The first failure counts. */
  fail(error: unknown): void {
    this.failure ??= this.note(error);
  }

  warn(text: string): void {
    if (!this.warnings.includes(text)) this.warnings.push(text);
  }

  /** Measures work into a field of the phase times; repeated work adds up. */
  async timed<T>(field: keyof PhaseTimes, work: () => Promise<T>): Promise<T> {
    const since = this.#clock.monotonicMs();
    try {
      return await work();
    } finally {
      this.spend(field, this.#clock.monotonicMs() - since);
    }
  }

  spend(field: keyof PhaseTimes, ms: number): void {
    this.phaseTimes[field] = Math.round(((this.phaseTimes[field] ?? 0) + ms) * 10) / 10;
  }

  /** Runs work between two time stamps; `keep` gets them as they become known. */
  async stamped<T>(keep: (timing: TimingInfo) => void, work: () => Promise<T>): Promise<T> {
    const started_at = toHarborTime(this.#clock.now());
    keep({ started_at, finished_at: null });
    try {
      return await work();
    } finally {
      keep({ started_at, finished_at: toHarborTime(this.#clock.now()) });
    }
  }
}
