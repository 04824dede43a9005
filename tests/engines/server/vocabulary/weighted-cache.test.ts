import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import { WeightedCache } from '../../../../src/engines/server/vocabulary/weighted-cache.ts';

suite('a cache with a budget', () => {
  const newCache = (): WeightedCache<number> => new WeightedCache(10, (key) => key.length);

  test('what was used longest ago goes first', () => {
    const cache = newCache();
    cache.add('aaaa', 1);
    cache.add('bbbb', 2);
    cache.get('aaaa');
    cache.add('cccc', 3);
    assert.deepEqual(
      ['aaaa', 'bbbb', 'cccc'].map((key) => cache.get(key)),
      [1, undefined, 3],
    );
    assert.equal(cache.weight, 8);
  });

  test('what is heavier than everything is not kept, and drops nothing', () => {
    const cache = newCache();
    cache.add('aaaa', 1);
    cache.add('b'.repeat(11), 2);
    assert.equal(cache.get('b'.repeat(11)), undefined);
    assert.equal(cache.get('aaaa'), 1);
  });

  test('the weight never passes the budget', () => {
    const cache = newCache();
    for (let index = 0; index < 100; index++) {
      cache.add('x'.repeat((index % 7) + 1) + String(index), index);
      assert.ok(cache.weight <= 10);
    }
  });
});
