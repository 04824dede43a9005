import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { SharedLook } from '../../src/core/shared-look.ts';

/** Looks that end when they are told to; each answers its number. */
function controlled(): {
  readonly look: SharedLook<number>;
  readonly begun: () => number;
  readonly end: () => void;
} {
  const running: (() => void)[] = [];
  let begun = 0;
  const look = new SharedLook<number>(() => {
    begun += 1;
    const number = begun;
    return new Promise((resolve) => running.push(() => resolve(number)));
  });
  return { look, begun: () => begun, end: () => running.shift()?.() };
}

async function until(isTrue: () => boolean): Promise<void> {
  while (!isTrue()) await new Promise((resolve) => setImmediate(resolve));
}

describe('a shared look', () => {
  it('is one for all who ask before it begins', async () => {
    const { look, begun, end } = controlled();
    const asked = Array.from({ length: 64 }, () => look.fresh());
    await until(() => begun() === 1);
    end();
    assert.deepEqual(new Set(await Promise.all(asked)), new Set([1]));
    assert.equal(begun(), 1);
  });

  it('that has begun does not answer who asks then: it would not prove what happened meanwhile', async () => {
    const { look, begun, end } = controlled();
    const first = look.fresh();
    await until(() => begun() === 1);
    const late = [look.fresh(), look.fresh()];
    end();
    assert.equal(await first, 1);
    await until(() => begun() === 2);
    end();
    assert.deepEqual(await Promise.all(late), [2, 2]);
  });

  it('fails for those who asked for it, and the next is made all the same', async () => {
    let count = 0;
    const look = new SharedLook(() => {
      count += 1;
      return count === 1 ? Promise.reject(new Error('no')) : Promise.resolve(count);
    });
    await assert.rejects(look.fresh(), /no/);
    assert.equal(await look.fresh(), 2);
  });
});
