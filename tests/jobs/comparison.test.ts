import assert from 'node:assert/strict';
import { test } from 'node:test';
import { compareTrials, type ScoredTrial } from '../../src/jobs/comparison.ts';
import { seededRandom } from '../../src/core/seeded-random.ts';

const options = { seed: 7, resamples: 4000 };

function job(rewards: Readonly<Record<string, readonly (number | null)[]>>): ScoredTrial[] {
  return Object.entries(rewards).flatMap(([task, attempts]) =>
    attempts.map((reward, attempt) => ({ task, attempt, reward })),
  );
}

test('pairs are task and attempt; wins, losses, ties and the mean difference are counted over them', () => {
  const result = compareTrials(
    job({ a: [0, 1], b: [1], c: [0] }),
    job({ a: [1, 1], b: [0], c: [1] }),
    options,
  );
  assert.equal(result.pairs, 4);
  assert.equal(result.tasks, 3);
  assert.deepEqual([result.wins, result.losses, result.ties], [2, 1, 1]);
  assert.equal(result.difference, 0.25);
  assert.equal(result.meanA, 0.5);
  assert.equal(result.meanB, 0.75);
});

test('a trial without a verdict is unpaired and never a zero', () => {
  const result = compareTrials(job({ a: [1, null], d: [1] }), job({ a: [1, 1], e: [0] }), options);
  assert.equal(result.pairs, 1);
  assert.equal(result.unpaired, 4);
  assert.equal(result.difference, 0);
});

test('the same seed gives the same interval, and it holds the difference', () => {
  const a = job({ a: [0], b: [0], c: [1], d: [0], e: [1] });
  const b = job({ a: [1], b: [0], c: [1], d: [1], e: [1] });
  const one = compareTrials(a, b, options);
  assert.deepEqual(one, compareTrials(a, b, options));
  const { interval, difference } = one;
  assert.ok(interval !== null && difference !== null);
  assert.ok(interval.low <= difference && difference <= interval.high);
  assert.ok(interval.low >= 0 && interval.high <= 1);
});

test('equal jobs have the interval [0, 0]', () => {
  const same = job({ a: [1], b: [0], c: [1] });
  assert.deepEqual(compareTrials(same, same, options).interval, { low: 0, high: 0 });
});

test('two tasks that differ by 0 and 1 resample to the mean 0, 1/2 or 1, so the interval is [0, 1]', () => {
  const result = compareTrials(job({ a: [0], b: [0] }), job({ a: [0], b: [1] }), options);
  assert.deepEqual(result.interval, { low: 0, high: 1 });
});

test('attempts at one task are drawn together: one task has no interval', () => {
  const result = compareTrials(job({ a: [0, 0, 0] }), job({ a: [1, 1, 0] }), options);
  assert.equal(result.interval, null);
  assert.equal(result.pairs, 3);
});

test('the sign test is exact: 5 wins to 0 losses is 2/32, 3 to 1 is 10/16', () => {
  const wins = (n: number, losses: number): number | null =>
    compareTrials(
      job({ a: [...Array<number>(n).fill(0), ...Array<number>(losses).fill(1)] }),
      job({ a: [...Array<number>(n).fill(1), ...Array<number>(losses).fill(0)] }),
      options,
    ).signTestP;
  assert.ok(Math.abs((wins(5, 0) ?? 0) - 2 / 32) < 1e-12);
  assert.ok(Math.abs((wins(3, 1) ?? 0) - 10 / 16) < 1e-12);
  assert.equal(wins(2, 2), 1);
});

test('the bootstrap covers the true difference in about 95 of 100 simulated experiments', () => {
  const random = seededRandom(11);
  let covered = 0;
  for (let experiment = 0; experiment < 100; experiment += 1) {
    const rewardsOf = (chance: number): ScoredTrial[] =>
      Array.from({ length: 40 }, (_, task) => ({
        task: String(task),
        attempt: 0,
        reward: random() < chance ? 1 : 0,
      }));
    const { interval } = compareTrials(rewardsOf(0.4), rewardsOf(0.6), {
      seed: experiment,
      resamples: 600,
    });
    if (interval !== null && interval.low <= 0.2 && 0.2 <= interval.high) covered += 1;
  }
  assert.ok(covered >= 88 && covered <= 100, `covered ${covered} times`);
});

test('without pairs there are no numbers', () => {
  const result = compareTrials(job({ a: [1] }), job({ b: [1] }), options);
  assert.deepEqual(
    [result.difference, result.interval, result.meanA, result.signTestP],
    [null, null, null, null],
  );
});
