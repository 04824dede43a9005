import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { jsonShape } from '../../src/core/json-shape.ts';

describe('the shape of a JSON text', () => {
  const rows: readonly (readonly [text: string, depth: number, values: number])[] = [
    ['', 0, 1],
    ['1', 0, 1],
    ['"[{,"', 0, 1],
    ['"\\""', 0, 1],
    ['"\\\\"', 0, 1],
    ['["\\\\",[]]', 2, 4],
    ['[]', 1, 2],
    ['[1,2,3]', 1, 4],
    ['{"a":{"b":[1]},"c":[[[]]]}', 4, 8],
    ['[[],[],[]]', 2, 7],
    [']]][[', 0, 3],
    ['"never closed [[[', 0, 1],
  ];
  for (const [text, depth, values] of rows)
    it(`of ${text} is ${depth} deep with up to ${values} values`, () => {
      assert.deepEqual(jsonShape(Buffer.from(text)), { depth, values });
    });
});
