/**
 * The built-in metrics of an eval group over the reward maps of its trials. One channel over all trials gives one number
 * under the metric's own name; several channels give one number per channel, a trial without that channel counting 0.
 */
import type { MetricConfig } from '../wire/harbor/job-config.ts';

export type RewardMap = Readonly<Record<string, number>>;

export type BuiltInMetric = Exclude<MetricConfig['type'], 'uv-script'>;

const aggregates: Readonly<Record<BuiltInMetric, (values: readonly number[]) => number>> = {
  mean: (values) => values.reduce((sum, value) => sum + value, 0) / values.length,
  sum: (values) => values.reduce((sum, value) => sum + value, 0),
  min: (values) => values.reduce((least, value) => Math.min(least, value), Infinity),
  max: (values) => values.reduce((most, value) => Math.max(most, value), -Infinity),
};

/** `null` is a trial without rewards that counts 0. No trials give no numbers. */
export function computeMetric(
  metric: BuiltInMetric,
  rewards: readonly (RewardMap | null)[],
): Record<string, number> {
  if (rewards.length === 0) return {};
  const aggregate = aggregates[metric];
  const channels = [...new Set(rewards.flatMap((map) => Object.keys(map ?? {})))];
  if (channels.length <= 1) {
    const channel = channels[0] ?? '';
    return { [metric]: aggregate(rewards.map((map) => rewardOf(map, channel))) };
  }
  return Object.fromEntries(
    channels.map((channel) => [channel, aggregate(rewards.map((map) => rewardOf(map, channel)))]),
  );
}

/** Only what the verifier wrote: every object has a `constructor`. */
function rewardOf(map: RewardMap | null, channel: string): number {
  return map !== null && Object.hasOwn(map, channel) ? (map[channel] ?? 0) : 0;
}
