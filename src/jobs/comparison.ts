/**
 * Two jobs on the same tasks, compared pair by pair. A pair is one task and one attempt that has a verdict in both jobs; what
 * has none is counted as unpaired and never as zero. The interval is a bootstrap over tasks (attempts at one task are not
 * independent, so a task is drawn whole), seeded, percentile, 95 %.
 */
import { seededRandom } from '../core/seeded-random.ts';

export interface ScoredTrial {
  readonly task: string;
  /** From 0, per task. */
  readonly attempt: number;
  /** null = no verdict, or none on the compared channel. */
  readonly reward: number | null;
}

export interface Comparison {
  readonly pairs: number;
  readonly tasks: number;
  /** Trials of either job without a partner that has a verdict. */
  readonly unpaired: number;
  readonly meanA: number | null;
  readonly meanB: number | null;
  /** Mean over pairs of B − A; null without pairs. */
  readonly difference: number | null;
  /** null with fewer than two tasks: one task says nothing about the spread. */
  readonly interval: { readonly low: number; readonly high: number } | null;
  /** Pairs in which B is better, A is better, neither. */
  readonly wins: number;
  readonly losses: number;
  readonly ties: number;
  /** Two-sided exact sign test over the pairs that are not ties; null without any. */
  readonly signTestP: number | null;
}

export interface ComparisonOptions {
  readonly seed: number;
  readonly resamples: number;
}

interface Pair {
  readonly task: string;
  readonly a: number;
  readonly b: number;
}

export function compareTrials(
  a: readonly ScoredTrial[],
  b: readonly ScoredTrial[],
  options: ComparisonOptions,
): Comparison {
  const pairs = pairUp(a, b);
  const perTask = [...Map.groupBy(pairs, ({ task }) => task).values()];
  const wins = pairs.filter((pair) => pair.b > pair.a).length;
  const losses = pairs.filter((pair) => pair.b < pair.a).length;
  return {
    pairs: pairs.length,
    tasks: perTask.length,
    unpaired: a.length + b.length - 2 * pairs.length,
    meanA: mean(pairs.map((pair) => pair.a)),
    meanB: mean(pairs.map((pair) => pair.b)),
    difference: mean(pairs.map((pair) => pair.b - pair.a)),
    interval: perTask.length < 2 ? null : bootstrap(perTask, options),
    wins,
    losses,
    ties: pairs.length - wins - losses,
    signTestP: signTest(wins, losses),
  };
}

function pairUp(a: readonly ScoredTrial[], b: readonly ScoredTrial[]): Pair[] {
  const key = (trial: ScoredTrial): string => JSON.stringify([trial.task, trial.attempt]);
  const partners = new Map(b.map((trial) => [key(trial), trial.reward]));
  return a.flatMap((trial) => {
    const partner = partners.get(key(trial)) ?? null;
    return trial.reward === null || partner === null
      ? []
      : [{ task: trial.task, a: trial.reward, b: partner }];
  });
}

function mean(values: readonly number[]): number | null {
  return values.length === 0 ? null : values.reduce((sum, value) => sum + value, 0) / values.length;
}

function bootstrap(
  perTask: readonly (readonly Pair[])[],
  options: ComparisonOptions,
): { low: number; high: number } {
  const random = seededRandom(options.seed);
  const sums = perTask.map((pairs) => ({
    n: pairs.length,
    total: pairs.reduce((sum, pair) => sum + pair.b - pair.a, 0),
  }));
  const means = Float64Array.from({ length: options.resamples }, () => {
    let n = 0;
    let total = 0;
    for (let left = sums.length; left > 0; left -= 1) {
      const drawn = sums[Math.floor(random() * sums.length)];
      n += drawn?.n ?? 0;
      total += drawn?.total ?? 0;
    }
    return total / n;
  }).sort();
  return { low: quantile(means, 0.025), high: quantile(means, 0.975) };
}

/** Linear interpolation between the two nearest ranks. */
function quantile(sorted: Float64Array, share: number): number {
  const position = share * (sorted.length - 1);
  const lower = sorted[Math.floor(position)] ?? Number.NaN;
  const upper = sorted[Math.ceil(position)] ?? Number.NaN;
  return lower + (upper - lower) * (position - Math.floor(position));
}

function signTest(wins: number, losses: number): number | null {
  const n = wins + losses;
  if (n === 0) return null;
  let logChoose = 0;
  let tail = 0;
  for (let k = 0; k <= Math.min(wins, losses); k += 1) {
    tail += Math.exp(logChoose - n * Math.LN2);
    logChoose += Math.log((n - k) / (k + 1));
  }
  return Math.min(1, 2 * tail);
}
