/** The official `openai` package as a client: whole answers, streams, tools, errors. */
import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import OpenAI from 'openai';
import type { Policy } from '../../../src/engines/mock/policy.ts';
import { serve, type Serving } from './serving.ts';

const policy: Policy = ({ tools, messages }) => {
  const [tool] = tools;
  const last = messages.at(-1);
  if (tool === undefined || last?.role === 'tool')
    return { content: `Answer to ${JSON.stringify(last?.content)} 👍`, reasoning: 'Let me see.' };
  return {
    content: 'I look.',
    toolCalls: [
      { name: tool.function.name, arguments: { city: 'Zürich "N"', days: 3 } },
      { name: tool.function.name, arguments: {} },
    ],
  };
};

const tools: OpenAI.ChatCompletionFunctionTool[] = [
  { type: 'function', function: { name: 'weather', parameters: { type: 'object' } } },
];

let engine: Serving;
let client: OpenAI;
before(async () => {
  engine = await serve({ policy, apiKey: 'key', dialect: 'openai' });
  client = new OpenAI({ baseURL: `${engine.url}/v1`, apiKey: 'key', maxRetries: 0 });
});
after(() => engine[Symbol.asyncDispose]());

const question = { role: 'user', content: 'Weather?' } as const;

describe('the openai package', () => {
  it('reads a whole answer', async () => {
    const answer = await client.chat.completions.create({ model: 'mock', messages: [question] });
    assert.equal(answer.choices[0]!.finish_reason, 'stop');
    assert.match(answer.choices[0]!.message.content ?? '', /Answer to "Weather\?" 👍$/);
    assert.equal(answer.usage!.completion_tokens, engine.log().at(-1)!.output_ids.length);
  });

  it('reads a stream with its own accumulator, usage included', async () => {
    const stream = client.chat.completions.stream({
      model: 'mock',
      messages: [question],
      logprobs: true,
      stream_options: { include_usage: true },
    });
    const deltas: string[] = [];
    stream.on('content', (delta) => deltas.push(delta));
    const final = await stream.finalChatCompletion();
    assert.equal(final.choices[0]!.message.content, deltas.join(''));
    assert.match(deltas.join(''), /Answer to "Weather\?" 👍$/);
    const line = engine.log().at(-1)!;
    assert.equal((await stream.totalUsage()).completion_tokens, line.output_ids.length);
    assert.deepEqual(
      final.choices[0]!.logprobs!.content!.map(({ logprob }) => logprob),
      line.logprobs,
    );
  });

  for (const isStreaming of [false, true])
    it(`calls tools and takes their results, ${isStreaming ? 'streaming' : 'whole'}`, async () => {
      const messages: OpenAI.ChatCompletionMessageParam[] = [question];
      const complete = async (): Promise<OpenAI.ChatCompletion> =>
        isStreaming
          ? await client.chat.completions
              .stream({ model: 'mock', messages, tools })
              .finalChatCompletion()
          : await client.chat.completions.create({ model: 'mock', messages, tools });
      const { message, finish_reason: reason } = (await complete()).choices[0]!;
      assert.equal(reason, 'tool_calls');
      assert.equal(message.content, 'I look.');
      const calls = message.tool_calls!.filter((call) => call.type === 'function');
      assert.deepEqual(
        calls.map((call) => JSON.parse(call.function.arguments) as unknown),
        [{ city: 'Zürich "N"', days: 3 }, {}],
      );
      assert.equal(new Set(calls.map(({ id }) => id)).size, 2);
      messages.push(message, { role: 'tool', tool_call_id: calls[0]!.id, content: 'sunny' });
      const second = (await complete()).choices[0]!;
      assert.equal(second.finish_reason, 'stop');
      assert.match(second.message.content ?? '', /Answer to "sunny"/);
      // The prompt of the second turn begins with the first one and what was sampled then.
      const [first, next] = engine.log().slice(-2);
      const sofar = [...first!.prompt_ids, ...first!.output_ids];
      assert.deepEqual(next!.prompt_ids.slice(0, sofar.length), sofar);
    });

  it('throws its own typed errors', async () => {
    const stranger = new OpenAI({ baseURL: `${engine.url}/v1`, apiKey: 'no', maxRetries: 0 });
    const body = { model: 'mock', messages: [question] };
    await assert.rejects(stranger.chat.completions.create(body), OpenAI.AuthenticationError);
    await assert.rejects(
      client.chat.completions.create({ ...body, max_completion_tokens: 1_000_000 }),
      (error) =>
        error instanceof OpenAI.BadRequestError && error.message.includes('maximum context'),
    );
    await assert.rejects(
      client.chat.completions.create({ ...body, model: 'other' }),
      OpenAI.NotFoundError,
    );
  });

  it('lists the models', async () => {
    const { data } = await client.models.list();
    assert.deepEqual(
      data.map(({ id }) => id),
      ['mock'],
    );
  });
});
