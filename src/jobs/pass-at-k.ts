/** pass@k of an eval group: the chance that at least one of k attempts at a task succeeds, averaged over tasks. */
import type { RewardMap } from './metrics.ts';

export interface Attempt {
  readonly task: string;
  /** `null` = no verdict: a failed attempt. */
  readonly rewards: RewardMap | null;
}

/**
 * Empty unless every rewarded attempt has exactly one channel whose value is 0 or 1. The values of k are the powers of two from
 * 2 and the multiples of 5, up to the smallest number of attempts that any task has.
 */
export function passAtK(attempts: readonly Attempt[]): Record<string, number> {
  const rewarded = attempts.flatMap(({ rewards }) => (rewards === null ? [] : [rewards]));
  if (rewarded.length === 0 || !rewarded.every(isBinary)) return {};
  const tasks = [...Map.groupBy(attempts, ({ task }) => task).values()].map((group) => ({
    attempts: group.length,
    successes: group.filter(({ rewards }) => rewards !== null && Object.values(rewards)[0] === 1)
      .length,
  }));
  const least = tasks.reduce((n, task) => Math.min(n, task.attempts), Infinity);
  return Object.fromEntries(
    eligibleK(least).map((k) => [
      String(k),
      tasks.reduce((sum, task) => sum + estimate(task.attempts, task.successes, k), 0) /
        tasks.length,
    ]),
  );
}

function isBinary(rewards: RewardMap): boolean {
  const values = Object.values(rewards);
  return values.length === 1 && (values[0] === 0 || values[0] === 1);
}

function eligibleK(limit: number): number[] {
  const chosen: number[] = [];
  for (let k = 2; k <= limit; k += 1) if (k % 5 === 0 || (k & (k - 1)) === 0) chosen.push(k);
  return chosen;
}

/** 1 − C(n−c, k) / C(n, k), as a product that does not overflow. */
function estimate(n: number, c: number, k: number): number {
  if (n - c < k) return 1;
  let allFail = 1;
  for (let i = 0; i < k; i += 1) allFail *= (n - c - i) / (n - i);
  return 1 - allFail;
}
