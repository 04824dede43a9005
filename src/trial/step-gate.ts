import type { Rewards } from '../verifier/reward-file.ts';
import type { TaskStep } from '../tasks/task.ts';
import type { RoundRun } from './stage.ts';

/** Whether the steps behind this one are given up: it failed without a verdict, or its rewards are below its threshold. */
export function stopsAfter({ round, outcome, plan }: RoundRun): boolean {
  if (round.step === null) return true;
  if (outcome.failure !== null && outcome.rewards === null) return true;
  if (plan.config.verifier.disable) return false;
  return !meetsMinimum(outcome.rewards, round.step.minReward);
}

/** A number gates the channel `reward`, a map each of its channels; a channel without a number is below every threshold. */
export function meetsMinimum(rewards: Rewards | null, minimum: TaskStep['minReward']): boolean {
  if (minimum === null) return true;
  const gates = typeof minimum === 'number' ? { reward: minimum } : minimum;
  return Object.entries(gates).every(
    ([channel, threshold]) => (rewards?.[channel] ?? -Infinity) >= threshold,
  );
}

/** The trial's rewards of its steps': those of the last executed step, or per channel the mean over the steps that have any, missing = 0. */
export function combineRewards(
  steps: readonly (Rewards | null)[],
  strategy: 'mean' | 'final' | null,
): Rewards | null {
  if (strategy === 'final') return steps.at(-1) ?? null;
  const known = steps.filter((rewards) => rewards !== null);
  if (known.length === 0) return null;
  const channels = new Set(known.flatMap((rewards) => Object.keys(rewards)));
  return Object.fromEntries(
    [...channels].map((channel) => [
      channel,
      known.reduce((sum, rewards) => sum + (rewards[channel] ?? 0), 0) / known.length,
    ]),
  );
}
