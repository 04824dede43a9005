import assert from 'node:assert/strict';
import { test } from 'node:test';
import { exactJson } from '../../src/core/exact-json.ts';

test('the sign of zero survives wherever it stands', () => {
  const value = { a: [-0, 0, -1.5], b: { c: [[1, 2], [-0]] }, d: -0 };
  assert.deepEqual(JSON.parse(exactJson(value)), value);
  assert.ok(Object.is((JSON.parse(exactJson(value)) as typeof value).b.c[1]?.[0], -0));
});

test('everything else is what JSON.stringify makes of it', () => {
  const value = {
    text: 'é\n"\u2028',
    none: null,
    absent: undefined,
    list: [1e21, 5e-324, null, undefined],
    time: new Date(0),
    nested: [{ a: true }, []],
    ['__proto__']: { a: 1 },
  };
  for (const indent of [undefined, 4])
    assert.equal(exactJson(value, indent), JSON.stringify(value, null, indent));
});
