/**
 * The numbers of an evaluation, twice. As Osmosis counts: every run that was not skipped is in the denominator, a failure without a reward is a run that
 * did not pass. And over the runs that say something about the agent: those with a verdict, and those that the agent itself failed; an outage of the
 * machine, the model or the verifier is no zero.
 */
import { errorRegistry, type ErrorCode } from '../../core/error-registry.ts';
import { passAtK } from '../../jobs/pass-at-k.ts';
import type { EvalItem } from './eval-items.ts';

export interface RewardNumbers {
  readonly count: number;
  readonly mean: number;
  /** Of the population. */
  readonly std: number;
  readonly min: number;
  readonly max: number;
}

export interface EvalRates {
  /** Runs in the denominator. */
  readonly scored: number;
  readonly passed: number;
  /** null = nothing was scored. */
  readonly pass_rate: number | null;
  readonly pass_at_k: Readonly<Record<string, number>>;
  /** null = there is no reward. */
  readonly reward: RewardNumbers | null;
}

export interface EvalMetrics extends EvalRates {
  readonly schema_version: 1;
  readonly total: number;
  readonly pending: number;
  readonly success: number;
  readonly failed: number;
  readonly skipped: number;
  readonly pass_threshold: number;
  /** Of all runs; null = no trajectory says. */
  readonly tokens: number | null;
  readonly failures: Readonly<Record<string, number>>;
  /** Without the runs that say nothing about the agent. */
  readonly slipway: EvalRates & {
    readonly uncounted: number;
    readonly infrastructure_failures: number;
  };
}

export interface MetricsSettings {
  readonly passThreshold: number;
  readonly repeats: number;
}

export function evalMetrics(items: readonly EvalItem[], settings: MetricsSettings): EvalMetrics {
  const ended = items.filter((item) => item.ended !== null);
  const having = (status: string): readonly EvalItem[] =>
    ended.filter((item) => item.ended?.status === status);
  const scored = ended.filter((item) => item.ended?.status !== 'skipped');
  const counted = scored.filter((item) => standingOf(item) !== 'uncounted');
  const tokens = items.flatMap(({ kept }) => (kept?.tokens == null ? [] : [kept.tokens]));
  return {
    schema_version: 1,
    total: items.length,
    pending: items.length - ended.length,
    success: having('success').length,
    failed: having('failed').length,
    skipped: having('skipped').length,
    pass_threshold: settings.passThreshold,
    ...rates(scored, (item) => item.ended?.reward ?? null, settings),
    tokens: tokens.length === 0 ? null : tokens.reduce((sum, count) => sum + count, 0),
    failures: countBy(having('failed').map((item) => failureOf(item))),
    slipway: {
      ...rates(counted, rewardOf, settings),
      uncounted: scored.length - counted.length,
      infrastructure_failures: scored.filter(isInfrastructureFailure).length,
    },
  };
}

/** The code of our registry where it is known, else the word of the protocol. */
export function failureOf({ ended, kept }: EvalItem): string {
  return ended?.cause ?? kept?.cause ?? ended?.error_type ?? 'failed';
}

/** With the verdict of a run whose agent failed and was verified all the same. */
function rewardOf({ ended, kept }: EvalItem): number | null {
  if (ended?.reward != null) return ended.reward;
  const rewards = kept?.verdict ?? {};
  const values = Object.values(rewards);
  return rewards['reward'] ?? (values.length === 1 ? (values[0] ?? null) : null);
}

function categoryOf(item: EvalItem): string | null {
  const failure = failureOf(item);
  return Object.hasOwn(errorRegistry, failure)
    ? errorRegistry[failure as ErrorCode].category
    : null;
}

/** As `slipway run` counts trials: with its reward, as 0 because the agent failed, or not at all. */
export function standingOf(item: EvalItem): 'scored' | 'agent-failed' | 'uncounted' {
  if (item.ended?.status === 'success') return item.ended.reward === null ? 'uncounted' : 'scored';
  if (categoryOf(item) !== 'agent') return 'uncounted';
  return rewardOf(item) === null ? 'agent-failed' : 'scored';
}

function isInfrastructureFailure(item: EvalItem): boolean {
  return item.ended?.status === 'failed' && categoryOf(item) === 'infrastructure';
}

function rates(
  items: readonly EvalItem[],
  rewardFor: (item: EvalItem) => number | null,
  { passThreshold, repeats }: MetricsSettings,
): EvalRates {
  const hasPassed = (item: EvalItem): boolean => {
    const reward = rewardFor(item);
    return reward !== null && reward >= passThreshold;
  };
  const passed = items.filter(hasPassed).length;
  return {
    ...{ scored: items.length, passed },
    pass_rate: items.length === 0 ? null : passed / items.length,
    pass_at_k: repeats < 2 ? {} : passRates(items, hasPassed),
    reward: rewardNumbers(items.map(rewardFor).filter((reward) => reward !== null)),
  };
}

/** Unbiased, for powers of two up to the number of runs that every row has. */
function passRates(
  items: readonly EvalItem[],
  hasPassed: (item: EvalItem) => boolean,
): Readonly<Record<string, number>> {
  if (items.length === 0) return {};
  const rows = [...Map.groupBy(items, ({ rowIndex }) => rowIndex).values()];
  const first =
    rows.reduce((sum, row) => sum + row.filter(hasPassed).length / row.length, 0) / rows.length;
  const attempts = items.map((item) => ({
    task: String(item.rowIndex),
    rewards: { passed: hasPassed(item) ? 1 : 0 },
  }));
  const others = Object.entries(passAtK(attempts)).filter(([k]) =>
    Number.isInteger(Math.log2(Number(k))),
  );
  return { '1': first, ...Object.fromEntries(others) };
}

function rewardNumbers(rewards: readonly number[]): RewardNumbers | null {
  if (rewards.length === 0) return null;
  const mean = rewards.reduce((sum, reward) => sum + reward, 0) / rewards.length;
  const variance = rewards.reduce((sum, reward) => sum + (reward - mean) ** 2, 0) / rewards.length;
  return {
    ...{ count: rewards.length, mean, std: Math.sqrt(variance) },
    min: rewards.reduce((least, reward) => Math.min(least, reward), Infinity),
    max: rewards.reduce((most, reward) => Math.max(most, reward), -Infinity),
  };
}

function countBy(keys: readonly string[]): Readonly<Record<string, number>> {
  return Object.fromEntries(
    [...Map.groupBy(keys, (key) => key)].map(([key, found]) => [key, found.length]),
  );
}
