import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import type { SamplingParams } from '../../../src/engines/engine.ts';
import { Distribution, draw } from '../../../src/engines/gguf/distribution.ts';

/** Best first, as the library gives them; 1.001 in all, as its float32 sums may be. */
const probabilities = new Map([
  [5, 0.5],
  [3, 0.3],
  [9, 0.15],
  [1, 0.051],
]);
const total = 1.001;

suite('what is reported', () => {
  const distribution = new Distribution(probabilities);

  test('is the logarithm of the share', () => {
    assert.ok(Math.abs(distribution.logprobOf(3) - Math.log(0.3 / total)) < 1e-12);
    const sum = distribution.top(4).reduce((all, { logprob }) => all + Math.exp(logprob), 0);
    assert.ok(Math.abs(sum - 1) < 1e-12);
  });

  test('has as many alternatives as asked for, best first', () => {
    assert.deepEqual(
      [0, 2, 9].map((count) => distribution.top(count).map(({ id }) => id)),
      [[], [5, 3], [5, 3, 9, 1]],
    );
  });

  test('has a floor, so that it can be written down', () => {
    const logprob = new Distribution(
      new Map([
        [0, 1],
        [1, 0],
      ]),
    ).logprobOf(1);
    assert.ok(logprob < -103 && logprob > -104);
  });
});

suite('what is drawn', () => {
  /** Shares of the ids over a fine grid of random numbers. */
  const shares = (
    sampling: SamplingParams,
    sampled: readonly number[] = [],
  ): Map<number, number> => {
    const distribution = new Distribution(probabilities);
    const counts = new Map<number, number>();
    const steps = 2000;
    for (let step = 0; step < steps; step++) {
      const id = draw(distribution, { sampling, sampled, random: () => (step + 0.5) / steps });
      counts.set(id, (counts.get(id) ?? 0) + 1 / steps);
    }
    return counts;
  };
  const scaled = (weights: readonly (readonly [number, number])[]): [number, number][] => {
    const sum = weights.reduce((all, [, weight]) => all + weight, 0);
    return weights.map(([id, weight]) => [id, weight / sum]);
  };

  const all = [...probabilities];
  const table: readonly (readonly [
    string,
    SamplingParams,
    readonly number[],
    [number, number][],
  ])[] = [
    ['the distribution itself', {}, [], scaled(all)],
    ['the best at temperature 0', { temperature: 0 }, [], [[5, 1]]],
    ['flatter when hot', { temperature: 2 }, [], scaled(all.map(([id, p]) => [id, Math.sqrt(p)]))],
    ['the best k', { topK: 2 }, [], scaled(all.slice(0, 2))],
    ['all for k of -1', { topK: -1 }, [], scaled(all)],
    ['the fewest that hold p', { topP: 0.75 }, [], scaled(all.slice(0, 2))],
    ['one even for the smallest p', { topP: 0 }, [], [[5, 1]]],
    ['those near the best', { minP: 0.2 }, [], scaled(all.slice(0, 3))],
    ['the best k and of these p', { topK: 3, topP: 0.8 }, [], scaled(all.slice(0, 2))],
    [
      'less of what was said',
      { presencePenalty: 1, frequencyPenalty: 0.5 },
      [5, 5, 3],
      scaled([
        [5, 0.5 * Math.exp(-2)],
        [3, 0.3 * Math.exp(-1.5)],
        [9, 0.15],
        [1, 0.051],
      ]),
    ],
    ['the best after penalties', { temperature: 0, presencePenalty: 2 }, [5], [[3, 1]]],
  ];
  for (const [title, sampling, sampled, expected] of table)
    test(title, () => {
      const found = shares(sampling, sampled);
      assert.equal(found.size, expected.length);
      for (const [id, share] of expected)
        assert.ok(Math.abs((found.get(id) ?? 0) - share) < 2e-3, `${id}: ${found.get(id)}`);
    });
});
