/**
 * The numbers of one eval group. Twice: as Harbor counts (every trial without rewards is a 0, a missing verdict a failed attempt) for
 * Harbor's fields of `result.json`, and without the trials that say nothing about the agent, for everything that we print.
 */
import type { MetricConfig } from '../wire/harbor/job-config.ts';
import type { EvalCoverage, EvalStats } from '../wire/harbor/job-result.ts';
import type { EvalGroup } from './eval-groups.ts';
import { computeMetric, type RewardMap } from './metrics.ts';
import { passAtK } from './pass-at-k.ts';
import { standingOf, type TrialSummary } from './trial-summary.ts';

/** Runs a metric that is a script; injected because it starts a process. */
export type ScriptMetric = (
  script: string,
  rewards: readonly (RewardMap | null)[],
) => Promise<Record<string, unknown>>;

export interface MetricsOptions {
  /** Empty = the mean. */
  readonly metrics: readonly MetricConfig[];
  /** null = leave script metrics out: statistics while the job runs. */
  readonly script: ScriptMetric | null;
}

export async function evalStatistics(
  group: EvalGroup,
  options: MetricsOptions,
): Promise<EvalStats> {
  const { trials } = group;
  return {
    n_trials: trials.filter(({ rewards }) => rewards !== null).length,
    n_errors: trials.filter(({ failure }) => failure !== null).length,
    metrics: await metricsOf(
      trials.map(({ rewards }) => rewards),
      options,
    ),
    pass_at_k: passAtK(trials.map(({ taskName, rewards }) => ({ task: taskName, rewards }))),
    reward_stats: rewardStats(trials),
    exception_stats: namesBy(trials, ({ failure }) => failure?.exceptionType ?? null),
    slipway: await coverage(trials, options),
  };
}

async function coverage(
  trials: readonly TrialSummary[],
  options: MetricsOptions,
): Promise<EvalCoverage> {
  const counted = trials.flatMap((trial) => {
    const standing = standingOf(trial);
    if (standing === 'uncounted') return [];
    return [{ task: trial.taskName, rewards: standing === 'scored' ? trial.rewards : null }];
  });
  return {
    n_counted: counted.length,
    n_uncounted: trials.length - counted.length,
    n_infrastructure_failures: trials.filter(isInfrastructureFailure).length,
    metrics: await metricsOf(
      counted.map(({ rewards }) => rewards),
      options,
    ),
    pass_at_k: passAtK(counted),
    failures: namesBy(trials, ({ failure }) => failure && (failure.code ?? failure.exceptionType)),
  };
}

function isInfrastructureFailure(trial: TrialSummary): boolean {
  const category = trial.failure?.category;
  return (
    standingOf(trial) === 'uncounted' && (category === 'infrastructure' || category === 'internal')
  );
}

async function metricsOf(
  rewards: readonly (RewardMap | null)[],
  { metrics, script }: MetricsOptions,
): Promise<Record<string, unknown>[]> {
  const chosen = metrics.length === 0 ? [{ type: 'mean' as const, kwargs: {} }] : metrics;
  const values: Record<string, unknown>[] = [];
  for (const metric of chosen) {
    if (metric.type !== 'uv-script') values.push(computeMetric(metric.type, rewards));
    else if (script !== null && rewards.length > 0)
      values.push(await script(scriptPath(metric), rewards));
  }
  return values.filter((value) => Object.keys(value).length > 0);
}

function scriptPath(metric: MetricConfig): string {
  const path = metric.kwargs['script_path'];
  return typeof path === 'string' ? path : 'metric.py';
}

/** Maps until the end: a verifier may call a channel `__proto__`. */
function rewardStats(trials: readonly TrialSummary[]): EvalStats['reward_stats'] {
  const given = trials.flatMap(({ trialName, rewards }) =>
    Object.entries(rewards ?? {}).map(([channel, value]) => ({ trialName, channel, value })),
  );
  const byChannel = Map.groupBy(given, ({ channel }) => channel);
  return Object.fromEntries(
    [...byChannel].map(([channel, verdicts]) => [
      channel,
      trialNames(Map.groupBy(verdicts, ({ value }) => pythonFloat(value))),
    ]),
  );
}

/** As Harbor's keys look: whole numbers with `.0`. */
function pythonFloat(value: number): string {
  return Number.isInteger(value) ? value.toFixed(1) : String(value);
}

function namesBy(
  trials: readonly TrialSummary[],
  keyOf: (trial: TrialSummary) => string | null,
): Record<string, string[]> {
  const keyed = trials.flatMap((trial) => {
    const key = keyOf(trial);
    return key === null ? [] : [{ trialName: trial.trialName, key }];
  });
  return trialNames(Map.groupBy(keyed, ({ key }) => key));
}

function trialNames(
  groups: ReadonlyMap<string, readonly { readonly trialName: string }[]>,
): Record<string, string[]> {
  return Object.fromEntries(
    [...groups].map(([key, members]) => [key, members.map(({ trialName }) => trialName)]),
  );
}
