import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { never } from '../../../src/core/linked-abort.ts';
import { sendEvents, sendJson } from '../shared/fake-host.ts';
import { chatRequest, partsOf, resultOf, withEngine } from '../shared/requests.ts';

const usage = { prompt_tokens: 3, completion_tokens: 2, total_tokens: 5 };
const logprobs = {
  content: [
    { token: 'Hi', logprob: -0.1234567890123456, top_logprobs: [] },
    { token: '!', logprob: -1e-9, top_logprobs: [] },
  ],
};
const whole = {
  id: 'chatcmpl-1',
  model: 'small-1',
  prompt_token_ids: [1, 2, 3],
  choices: [
    {
      index: 0,
      message: { role: 'assistant', content: 'Hi!', reasoning_content: 'short' },
      logprobs,
      token_ids: [40, 41],
      finish_reason: 'stop',
      stop_reason: 41,
    },
  ],
  usage,
};

describe('the chat client', () => {
  it('reads an answer that is not streamed, its ids and log-probabilities number for number', async () => {
    const result = await withEngine(
      'chat',
      (_, response) => sendJson(response, whole),
      (engine) => resultOf(engine, chatRequest({ requestId: 'r1' })),
    );
    assert.deepEqual(result, {
      requestId: 'r1',
      text: 'Hi!',
      reasoning: 'short',
      toolCalls: [],
      finishReason: 'stop',
      stopString: null,
      promptIds: [1, 2, 3],
      outputIds: [40, 41],
      logprobs: [-0.1234567890123456, -1e-9],
      weightVersion: null,
      usage: { promptTokens: 3, completionTokens: 2, cachedTokens: null, reasoningTokens: null },
      model: 'small-1',
      extra: { stop_reason: 41 },
    });
  });

  it('reads the same from a stream, part by part', async () => {
    const { parts, body } = await withEngine(
      'chat',
      (_, response) => {
        const [first, second] = logprobs.content;
        sendEvents(response, [
          {
            model: 'small-1',
            prompt_token_ids: [1, 2, 3],
            choices: [{ index: 0, delta: { role: 'assistant', content: '' } }],
          },
          { choices: [{ index: 0, delta: { reasoning_content: 'short' } }] },
          {
            choices: [
              {
                index: 0,
                delta: { content: 'Hi!' },
                token_ids: [40],
                logprobs: { content: [first] },
              },
            ],
          },
          {
            choices: [
              {
                index: 0,
                delta: {},
                token_ids: [41],
                logprobs: { content: [second] },
                finish_reason: 'stop',
                stop_reason: 41,
              },
            ],
          },
          { choices: [], usage },
          '[DONE]',
        ]);
        response.end();
      },
      async (engine, host) => ({
        parts: await partsOf(
          await engine.generate(chatRequest({ requestId: 'r1', isStreaming: true }), never),
        ),
        body: host.asked[0]?.body,
      }),
    );
    assert.deepEqual(
      parts.filter(({ type }) => type !== 'end'),
      [
        { type: 'prompt-ids', ids: [1, 2, 3] },
        { type: 'reasoning-delta', text: 'short' },
        { type: 'text-delta', text: 'Hi!' },
        { type: 'tokens-delta', ids: [40], logprobs: [-0.1234567890123456] },
        { type: 'tokens-delta', ids: [41], logprobs: [-1e-9] },
      ],
    );
    const last = parts.at(-1);
    const sameWhole = await withEngine(
      'chat',
      (_, response) => sendJson(response, whole),
      (engine) => resultOf(engine, chatRequest({ requestId: 'r1' })),
    );
    assert.ok(last?.type === 'end');
    assert.deepEqual(last.result, sameWhole);
    assert.equal(body?.['logprobs'], true);
    assert.equal(body['return_token_ids'], true);
    assert.deepEqual(body['stream_options'], { include_usage: true });
  });
});
