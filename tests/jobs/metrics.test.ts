import assert from 'node:assert/strict';
import { test } from 'node:test';
import { computeMetric, type BuiltInMetric, type RewardMap } from '../../src/jobs/metrics.ts';

const rows: readonly {
  readonly title: string;
  readonly metric: BuiltInMetric;
  readonly rewards: readonly (RewardMap | null)[];
  readonly expected: Record<string, number>;
}[] = [
  {
    title: 'one channel gives its mean under the metric’s name',
    metric: 'mean',
    rewards: [{ reward: 1 }, { reward: 0 }, { reward: 0.5 }],
    expected: { mean: 0.5 },
  },
  {
    title: 'a trial without rewards counts 0',
    metric: 'mean',
    rewards: [{ reward: 1 }, null],
    expected: { mean: 0.5 },
  },
  {
    title: 'several channels give one number each, missing ones counting 0',
    metric: 'mean',
    rewards: [{ a: 1, b: 0.5 }, { a: 0 }],
    expected: { a: 0.5, b: 0.25 },
  },
  {
    title: 'sum adds',
    metric: 'sum',
    rewards: [{ r: 1 }, { r: 2.5 }, null],
    expected: { sum: 3.5 },
  },
  {
    title: 'min sees the 0 of a missing verdict',
    metric: 'min',
    rewards: [{ r: 1 }, null],
    expected: { min: 0 },
  },
  {
    title: 'max of negative rewards is the largest',
    metric: 'max',
    rewards: [{ r: -2 }, { r: -1 }],
    expected: { max: -1 },
  },
  {
    title: 'rewards missing everywhere mean 0',
    metric: 'mean',
    rewards: [null, null],
    expected: { mean: 0 },
  },
  {
    title: 'a channel named like a property of every object is a channel like any other',
    metric: 'mean',
    rewards: [{ constructor: 1, a: 1 }, { a: 0 }],
    expected: { constructor: 0.5, a: 0.5 },
  },
  { title: 'no trials give no number', metric: 'mean', rewards: [], expected: {} },
];

for (const { title, metric, rewards, expected } of rows)
  test(title, () => assert.deepEqual(computeMetric(metric, rewards), expected));
