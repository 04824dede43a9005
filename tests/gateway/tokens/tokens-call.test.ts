/** An answer in ids whose engine takes some of them back: what is missing in the text is an error, never a shorter answer. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { ModelPart, ModelResult } from '../../../src/engines/model-call.ts';
import { TokensCall } from '../../../src/gateway/tokens/tokens-call.ts';
import { qwenCodec } from './tokens-fixture.ts';

const codec = await qwenCodec();
const promptIds = codec.encode('<|im_start|>assistant\n');
const ids = ['H', 'e', 'l', 'l', 'o'].flatMap((letter) => [...codec.encode(letter)]);

/** Its engine streams `said` ids, says that there were `counted` of them, and vouches for them or not. */
async function read(said: number, counted: number | null, isVouched: boolean) {
  const usage = counted === null ? null : { promptTokens: 1, completionTokens: counted, cachedTokens: 0, reasoningTokens: 0 }; // prettier-ignore
  const result: ModelResult = {
    ...{ requestId: 'x', text: '', reasoning: null, toolCalls: [], finishReason: 'stop' },
    ...{ stopString: null, weightVersion: null, usage, model: 'm', extra: {}, logprobs: null },
    ...{ promptIds: [...promptIds], outputIds: isVouched ? ids.slice(0, said) : null },
  };
  const parts: readonly ModelPart[] = [
    { type: 'tokens-delta', ids: ids.slice(0, said), logprobs: null },
    { type: 'end', result },
  ];
  let answers = 0;
  const call = new TokensCall({
    call: {
      requestId: 'x',
      async *[Symbol.asyncIterator]() {
        yield* await Promise.resolve(parts);
        return undefined;
      },
    },
    prompt: {
      ...{ ids: promptIds, source: 'opening', kept: 0, parent: null },
      conversation: { messages: [], tools: [], templateVariables: {} },
    },
    ...{ parser: codec.parser({ promptIds, tools: [] }), stops: [] },
    onAnswer: () => (answers += 1),
  });
  let text = '';
  for await (const part of call) if (part.type === 'text-delta') text += part.text;
  return { text, answers };
}

for (const { title, said, counted, isVouched } of [
  { title: 'fewer than it counts', said: 2, counted: 5, isVouched: false },
  { title: 'some, of a number that nobody knows', said: 2, counted: null, isVouched: false },
  { title: 'none, of a number that nobody knows', said: 0, counted: null, isVouched: true },
])
  test(`an answer of which an engine says ${title} is an error`, async () => {
    await assert.rejects(read(said, counted, isVouched), { code: 'ENGINE_RESPONSE_INVALID' });
  });

test('an answer whose ids are all there is whole, and goes on only where the engine vouches for them', async () => {
  assert.deepEqual(await read(5, 5, true), { text: 'Hello', answers: 1 });
  assert.deepEqual(await read(5, 4, false), { text: 'Hello', answers: 0 });
});
