import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { pauseMs, retryAfterMs } from '../../src/callbacks/retry-schedule.ts';

const plain = { retryAfterMs: null, random: 0 };

describe('the pauses between attempts', () => {
  test('a first round of five attempts, then longer and longer up to five minutes', () => {
    const pauses = Array.from({ length: 12 }, (_, index) =>
      pauseMs({ ...plain, failed: index + 1 }),
    );
    assert.deepEqual(
      pauses,
      [0.5, 1, 2, 4, 15, 30, 60, 120, 240, 300, 300, 300].map((seconds) => seconds * 1_000),
    );
    assert.equal(pauseMs({ ...plain, failed: 10_000 }), 300_000);
  });

  test('at most a quarter is added at random', () => {
    assert.equal(pauseMs({ ...plain, failed: 1, random: 1 }), 625);
    assert.equal(pauseMs({ ...plain, failed: 1, random: 0.5 }), 562.5);
  });

  const asked: readonly [number, number][] = [
    [0, 500],
    [400, 500],
    [7_000, 7_000],
    [9e12, 300_000],
  ];
  for (const [ms, expected] of asked)
    test(`a receiver that asks for ${ms} ms gets ${expected} ms`, () => {
      assert.equal(pauseMs({ failed: 1, retryAfterMs: ms, random: 0 }), expected);
    });
});

describe('the header Retry-After', () => {
  const now = new Date('2030-01-01T00:00:00Z');
  const rows: readonly [string | undefined, number | null][] = [
    [undefined, null],
    ['', null],
    ['soon', null],
    ['5', 5_000],
    ['0.25', 250],
    ['-3', 0],
    ['NaN', null],
    ['Infinity', null],
    ['Tue, 01 Jan 2030 00:00:10 GMT', 10_000],
    ['Mon, 31 Dec 2029 00:00:00 GMT', 0],
  ];
  for (const [header, expected] of rows)
    test(`${header ?? 'absent'} is ${expected === null ? 'no number' : `${expected} ms`}`, () => {
      assert.equal(retryAfterMs(header, now), expected);
    });
});
