import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { RouteKeys } from '../../src/gateway/route-keys.ts';

describe('route keys', () => {
  it('are opaque, differ, and hold at least 192 random bits', () => {
    const keys = new RouteKeys<number>();
    const made = Array.from({ length: 200 }, (_, index) => keys.add(`r${index}`, index));
    assert.equal(new Set(made).size, 200);
    for (const [index, key] of made.entries()) {
      assert.match(key, /^sk-slipway-[A-Za-z0-9_-]{43}$/);
      assert.equal(keys.find(key), index);
    }
    assert.equal(keys.size, 200);
  });

  it('die with their rollout, and at the next registration of it', () => {
    const keys = new RouteKeys<string>();
    const first = keys.add('r', 'first');
    const second = keys.add('r', 'second');
    assert.equal(keys.find(first), null);
    assert.equal(keys.find(second), 'second');
    keys.remove('r');
    keys.remove('r');
    assert.equal(keys.find(second), null);
    assert.equal(keys.size, 0);
  });

  it('are not found by anything else', () => {
    const keys = new RouteKeys<string>();
    const key = keys.add('r', 'route');
    for (const other of [
      '',
      'r',
      key.slice(1),
      `${key} `,
      key.toUpperCase(),
      'x'.repeat(1_000_000),
    ])
      assert.equal(keys.find(other), null);
  });
});
