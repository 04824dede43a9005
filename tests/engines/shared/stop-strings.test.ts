import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { GenerateRequest } from '../../../src/engines/engine.ts';
import { GenerateReader } from '../../../src/engines/sglang/generate-reader.ts';
import { ChatReader } from '../../../src/engines/shared/chat-reader.ts';
import type { AnswerReader } from '../../../src/engines/shared/running-call.ts';
import { CompletionsReader } from '../../../src/engines/vllm/completions.ts';
import { chatRequest } from './requests.ts';

const at = { url: 'http://engine.test', requestId: 'r', secrets: [] };
const usage = { prompt_tokens: 1, completion_tokens: 1 };
const chat = (fields: object): object => ({
  choices: [{ index: 0, message: { content: 'A' }, finish_reason: 'stop', ...fields }],
  usage,
});

const dialects: readonly {
  readonly title: string;
  readonly open: (request: GenerateRequest) => AnswerReader;
  readonly answer: (matched: unknown) => object;
}[] = [
  {
    title: 'stop_reason of a chat completion',
    open: (request) => new ChatReader(request, at),
    answer: (matched) => chat({ stop_reason: matched }),
  },
  {
    title: 'matched_stop of a chat completion',
    open: (request) => new ChatReader(request, at),
    answer: (matched) => chat({ matched_stop: matched }),
  },
  {
    title: 'stop_reason of a completion',
    open: (request) => new CompletionsReader(request, at),
    answer: (matched) => ({
      choices: [{ index: 0, text: 'A', finish_reason: 'stop', stop_reason: matched }],
      usage,
    }),
  },
  {
    title: 'what /generate matched',
    open: (request) => new GenerateReader(request, { at, promptIds: [1] }),
    answer: (matched) => ({
      text: 'A',
      meta_info: { ...usage, finish_reason: { type: 'stop', matched } },
    }),
  },
];

const asked: readonly {
  readonly request: Partial<GenerateRequest>;
  readonly stop: string | null;
}[] = [
  { request: { sampling: { stop: ['X', 'END'] } }, stop: 'END' },
  { request: { extraBody: { stop: 'END' } }, stop: 'END' },
  { request: { extraBody: { stop: ['END'] } }, stop: 'END' },
  { request: { sampling: { stop: ['X'] } }, stop: null },
  { request: {}, stop: null },
];

describe('the string that ended an answer', () => {
  for (const { title, open, answer } of dialects) {
    for (const { request, stop } of asked)
      it(`is ${stop ?? 'none'} by ${title} after a request with ${JSON.stringify(request)}`, () => {
        assert.equal(stopOf(open(chatRequest(request)), answer('END')), stop);
      });

    it(`is none where ${title} is a token`, () => {
      assert.equal(stopOf(open(chatRequest({ sampling: { stop: ['END'] } })), answer(42)), null);
    });
  }
});

function stopOf(reader: AnswerReader, answer: object): string | null {
  const last = reader.whole(answer).at(-1);
  assert.ok(last?.type === 'end');
  return last.result.stopString;
}
