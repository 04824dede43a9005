import type { FilterVerdict } from '../hooks.ts';
import type { CollectedGroup } from '../group.ts';

/** Below this a spread is rounding. */
const leastDeviation = 1e-8;

/**
 * Keeps groups whose rewards differ: one where all are the same teaches nothing. Masked members do not count. A member without a reward is a mistake of the set-up:
 * it throws, which costs its group and says why.
 */
export function rewardSpread(group: CollectedGroup): FilterVerdict {
  const counted = group.members.filter(({ isMasked }) => !isMasked);
  const rewards = counted.map(({ reward, request }) => {
    if (reward === null) throw new TypeError(`${request.rolloutId} has no reward`);
    return reward;
  });
  const mean = rewards.reduce((sum, reward) => sum + reward, 0) / rewards.length;
  const squares = rewards.reduce((sum, reward) => sum + (reward - mean) ** 2, 0);
  // Of a single one it is undefined.
  const deviation = Math.sqrt(squares / (rewards.length - 1));
  if (deviation > leastDeviation) return { keep: true };
  return { keep: false, reason: `zero_std_${(rewards[0] ?? 0).toFixed(1)}` };
}
