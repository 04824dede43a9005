import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { atifText } from '../../../src/wire/atif/atif-text.ts';

describe('ATIF as text', () => {
  const rows: readonly (readonly [string, unknown, string])[] = [
    ['numbers stay on one line', [1, 2.5, -3], '[1, 2.5, -3]'],
    ['a negative zero keeps its sign', [-0, 0], '[-0.0, 0]'],
    ['mixed arrays take a line for each item', [1, 'a'], '[\n  1,\n  "a"\n]'],
    ['empty things stay short', { a: [], b: {} }, '{\n  "a": [],\n  "b": {}\n}'],
    ['what is undefined is left out', { a: undefined, b: null }, '{\n  "b": null\n}'],
    [
      'all beyond ASCII is escaped',
      'é😀\u007f\u2028',
      String.raw`"\u00e9\ud83d\ude00\u007f\u2028"`,
    ],
    ['keys are escaped too', { é: 1 }, '{\n  "\\u00e9": 1\n}'],
  ];
  for (const [title, value, expected] of rows)
    test(title, () => assert.equal(atifText(value, 0, ''), expected));

  test('one line has no spaces and means the same', () => {
    const value = { a: [1, 2], b: [{ c: null }], d: -0 };
    const text = atifText(value, null, '');
    assert.equal(text, '{"a":[1,2],"b":[{"c":null}],"d":-0.0}');
    assert.deepEqual(JSON.parse(text), value);
  });

  for (const value of [NaN, Infinity, -Infinity])
    test(`${value} is refused and its field named`, () =>
      assert.throws(() => atifText({ a: [{ b: value }] }, 0, 'steps.1'), {
        code: 'TRAJECTORY_INVALID',
        field: 'steps.1.a.0.b',
      }));
});
