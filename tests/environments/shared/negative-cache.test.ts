import assert from 'node:assert/strict';
import { it } from 'node:test';
import type { Clock } from '../../../src/core/clock.ts';
import { NegativeCache } from '../../../src/environments/shared/negative-cache.ts';

function steppedClock(): Clock & { advance(ms: number): void } {
  let nowMs = 0;
  return {
    now: () => new Date(nowMs),
    monotonicMs: () => nowMs,
    sleep: () => Promise.resolve(),
    advance: (ms) => (nowMs += ms),
  };
}

it('answers a failure until its time is over', () => {
  const clock = steppedClock();
  const cache = new NegativeCache<string>({ ttlMs: 100, clock });
  assert.equal(cache.get('a'), null);
  cache.remember('a', 'broken');
  clock.advance(99);
  assert.equal(cache.get('a'), 'broken');
  clock.advance(1);
  assert.equal(cache.get('a'), null);
});

it('drops the oldest entries beyond its size', () => {
  const cache = new NegativeCache<string>({ ttlMs: 100, clock: steppedClock(), maxEntries: 2 });
  for (const key of ['a', 'b', 'a', 'c']) cache.remember(key, key);
  assert.deepEqual([cache.get('a'), cache.get('b'), cache.get('c')], ['a', null, 'c']);
});
