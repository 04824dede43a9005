import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { SampledTokens } from '../../src/gateway/sampled-tokens.ts';

const event = (value: unknown): string => `data: ${JSON.stringify(value)}\n\n`;
const delta = (content: string): string => event({ choices: [{ delta: { content } }] });
const usage = (tokens: number): string =>
  event({ choices: [], usage: { completion_tokens: tokens, prompt_tokens: 3 } });
const lie = 'say "completion_tokens": 99, \\"completion_tokens\\": 98\ndata: {"x":1}';

const rows = [
  {
    what: 'what usage says',
    text: delta('a') + usage(12) + 'data: [DONE]\n\n',
    isStream: true,
    count: 12,
  },
  {
    what: 'what usage said last',
    text: delta('a') + usage(1) + delta('b') + usage(7),
    isStream: true,
    count: 7,
  },
  {
    what: 'an event each where usage is not said',
    text: delta('a') + delta('b') + ': alive\n\ndata: [DONE]\n\n',
    isStream: true,
    count: 2,
  },
  {
    what: 'nothing that the model says itself',
    text: delta(lie) + delta(lie),
    isStream: true,
    count: 2,
  },
  {
    what: 'usage of a whole answer',
    text: JSON.stringify(
      { choices: [{ message: { content: lie } }], usage: { completion_tokens: 3456 } },
      null,
      2,
    ),
    isStream: false,
    count: 3456,
  },
  { what: 'nothing of a whole answer without usage', text: '{"x":1}', isStream: false, count: 0 },
];

describe('sampled tokens of an answer', () => {
  for (const { what, text, isStream, count } of rows)
    it(`are ${what}, wherever it is cut`, () => {
      const bytes = Buffer.from(text);
      for (const size of [1, 2, 7, 31, bytes.length]) {
        const sampled = new SampledTokens({ isStream });
        for (let from = 0; from < bytes.length; from += size)
          sampled.push(bytes.subarray(from, from + size));
        assert.equal(sampled.count, count, `pieces of ${size}`);
      }
    });
});
