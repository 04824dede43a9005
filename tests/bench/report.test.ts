import assert from 'node:assert/strict';
import { it } from 'node:test';
import { isMet } from '../../bench/report.ts';
import { interleaved, median, quantile } from '../../bench/samples.ts';

it('a goal is met at its limit and missed beyond it, in both directions', () => {
  const goal = { name: 'x', unit: '×', limit: 1.5 };
  assert.equal(isMet({ ...goal, direction: 'at most', measured: 1.5 }), true);
  assert.equal(isMet({ ...goal, direction: 'at most', measured: 1.51 }), false);
  assert.equal(isMet({ ...goal, direction: 'at least', measured: 1.5 }), true);
  assert.equal(isMet({ ...goal, direction: 'at least', measured: 1.49 }), false);
});

it('a goal without a measurement is missed', () => {
  assert.equal(
    isMet({ name: 'x', unit: '×', limit: 1, direction: 'at most', measured: Number.NaN }),
    false,
  );
});

it('median and quantiles follow the nearest-rank rule', () => {
  assert.equal(median([3, 1, 2]), 2);
  assert.equal(median([4, 1, 2, 3]), 2.5);
  assert.equal(quantile([1, 2, 3, 4], 0.5), 2);
  assert.equal(quantile([1, 2, 3, 4], 0.99), 4);
  assert.equal(Number.isNaN(quantile([], 0.5)), true);
});

it('variants take turns round by round', async () => {
  const order: string[] = [];
  const variant = (name: string) => async () => order.push(name);
  await interleaved(2, { a: variant('a'), b: variant('b') });
  assert.deepEqual(order, ['a', 'b', 'a', 'b']);
});
