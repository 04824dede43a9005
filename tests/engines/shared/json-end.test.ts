import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { JsonEnd } from '../../../src/engines/shared/json-end.ts';

const complete = [
  '{}',
  '[]',
  ' {"a": [1, {"b": "}"}]} \n',
  '{"a":"\\"}"}',
  '{"a":"\\\\"}',
  '{"🙂":"🙂"}',
];
const open = ['', ' ', '{', '{"a":"}', '{"a":"\\"}', '[{}', 'ls', '1', '"a"', '{}{', '{} x', '}'];

describe('the end of a JSON object', () => {
  for (const [texts, isComplete] of [
    [complete, true],
    [open, false],
  ] as const)
    for (const text of texts)
      it(`${isComplete ? 'is seen' : 'is not seen'} in ${JSON.stringify(text)}, however it is cut`, () => {
        for (let size = 1; size <= text.length + 1; size++) {
          const end = new JsonEnd();
          for (let from = 0; from < text.length; from += size)
            end.push(text.slice(from, from + size));
          assert.equal(end.isComplete, isComplete);
        }
      });
});
