/** Counts a job while it runs and renders them as `result.json`. */
import type { Clock } from '../core/clock.ts';
import type { EvalStats, JobResult } from '../wire/harbor/job-result.ts';
import { evalGroups, type EvalGroup } from './eval-groups.ts';
import { evalStatistics, type MetricsOptions } from './eval-statistics.ts';
import { sumKnown, type TokenTotals, type TrialSummary } from './trial-summary.ts';

export interface JobIdentity {
  readonly id: string;
  readonly startedAt: string;
  readonly totalTrials: number;
}

export class JobStatistics {
  readonly #identity: JobIdentity;
  readonly #clock: Clock;
  readonly #ended: TrialSummary[];
  readonly #running = new Set<string>();
  #retries: number;

  constructor(
    identity: JobIdentity,
    before: { readonly ended: readonly TrialSummary[]; readonly retries: number },
    clock: Clock,
  ) {
    this.#identity = identity;
    this.#ended = [...before.ended];
    this.#retries = before.retries;
    this.#clock = clock;
  }

  get trials(): readonly TrialSummary[] {
    return this.#ended;
  }

  get runningTrials(): number {
    return this.#running.size;
  }

  started(trialName: string): void {
    this.#running.add(trialName);
  }

  /** The try that just ended does not count; another follows. */
  retrying(): void {
    this.#retries += 1;
  }

  ended(trial: TrialSummary): void {
    this.#running.delete(trial.trialName);
    this.#ended.push(trial);
  }

  /** `isFinished` sets `finished_at`; script metrics run only with `metrics.script`. */
  async result(
    metrics: MetricsOptions,
    options: { readonly isFinished: boolean },
  ): Promise<{ readonly result: JobResult; readonly groups: readonly EvalGroup[] }> {
    const trials = [...this.#ended];
    const running = this.#running.size;
    const groups = evalGroups(trials);
    const evals: Record<string, EvalStats> = {};
    for (const group of groups) evals[group.key] = await evalStatistics(group, metrics);
    const now = toLocalTime(this.#clock.now());
    const { id, startedAt, totalTrials } = this.#identity;
    const result: JobResult = {
      id,
      started_at: startedAt,
      updated_at: now,
      finished_at: options.isFinished ? now : null,
      n_total_trials: totalTrials,
      stats: {
        n_completed_trials: trials.length,
        n_errored_trials: trials.filter(({ failure }) => failure !== null).length,
        n_running_trials: running,
        n_pending_trials: Math.max(totalTrials - trials.length - running, 0),
        n_cancelled_trials: trials.filter(({ failure }) => failure?.category === 'cancelled')
          .length,
        n_retries: this.#retries,
        evals,
        n_input_tokens: total(trials, 'input'),
        n_cache_tokens: total(trials, 'cache'),
        n_output_tokens: total(trials, 'output'),
        cost_usd: total(trials, 'costUsd'),
      },
    };
    return { result, groups };
  }
}

function total(trials: readonly TrialSummary[], field: keyof TokenTotals): number | null {
  return sumKnown(trials.map(({ tokens }) => tokens[field]));
}

/** Local time without a zone, as Harbor writes the times of a job. */
export function toLocalTime(time: Date): string {
  const pad = (value: number, width = 2): string => String(value).padStart(width, '0');
  const day = `${time.getFullYear()}-${pad(time.getMonth() + 1)}-${pad(time.getDate())}`;
  const clock = `${pad(time.getHours())}:${pad(time.getMinutes())}:${pad(time.getSeconds())}`;
  return `${day}T${clock}.${pad(time.getMilliseconds(), 3)}000`;
}
