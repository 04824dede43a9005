/** The three routes that sample, over HTTP: what they answer is what the log says. */
import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import type { RequestLogEntry } from '../../../src/engines/server/request-log.ts';
import { hi, says, serve, type Answer, type Serving } from './serving.ts';

let engine: Serving;
before(async () => {
  engine = await serve({ policy: says('Hello, wörld! 👍') });
});
after(() => engine[Symbol.asyncDispose]());

const lastLine = (): RequestLogEntry => engine.log().at(-1)!;

describe('chat', () => {
  it('answers with text, usage and the reason of the end', async () => {
    const answer = await engine.json('/v1/chat/completions', hi);
    const { prompt_ids: promptIds, output_ids: outputIds } = lastLine();
    assert.equal(answer.object, 'chat.completion');
    assert.deepEqual(answer.choices[0].message, {
      role: 'assistant',
      content: 'Hello, wörld! 👍',
      reasoning_content: null,
    });
    assert.equal(answer.choices[0].finish_reason, 'stop');
    assert.equal(answer.choices[0].logprobs, null);
    assert.equal('token_ids' in answer.choices[0], false);
    assert.equal('prompt_token_ids' in answer, false);
    assert.equal(answer.usage.prompt_tokens, promptIds.length);
    assert.equal(answer.usage.completion_tokens, outputIds.length);
    assert.equal(answer.usage.total_tokens, promptIds.length + outputIds.length);
  });

  it('gives ids and log-probabilities as vLLM does, number for number as logged', async () => {
    const body = { ...hi, logprobs: true, top_logprobs: 3, return_token_ids: true };
    const answer = await engine.json('/v1/chat/completions', body);
    const line = lastLine();
    const [choice] = answer.choices;
    assert.deepEqual(answer.prompt_token_ids, line.prompt_ids);
    assert.deepEqual(choice.token_ids, line.output_ids);
    assert.equal(line.output_ids.at(-1), engine.vocabulary.endId);
    const logprobs = choice.logprobs!.content!.map(({ logprob }) => logprob);
    assertSameNumbers(logprobs, line.logprobs);
    for (const entry of choice.logprobs!.content!) {
      assert.equal(entry.top_logprobs.length, 3);
      assert.ok(entry.top_logprobs.some((top) => top.token === entry.token));
      const mass = entry.top_logprobs.reduce((sum, top) => sum + Math.exp(top.logprob), 0);
      assert.ok(mass <= 1 + 1e-6, String(mass));
    }
  });

  it('takes ids for the prompt, tells meta_info and sglext as SGLang does', async () => {
    const promptIds = engine.model.render({
      messages: [{ role: 'user', content: 'yo' }],
      tools: [],
    });
    const answer = await engine.json('/v1/chat/completions', {
      input_ids: promptIds,
      logprobs: true,
      return_meta_info: true,
      return_input_ids_in_sglext: true,
      return_output_ids: true,
      chat_template_kwargs: { enable_thinking: false },
      rid: 'mine',
    });
    const line = lastLine();
    const { meta_info: meta } = answer.choices[0];
    assert.equal(answer.id, 'mine');
    assert.equal(line.request_id, 'mine');
    assert.deepEqual(line.prompt_ids, promptIds);
    assert.deepEqual(answer.sglext, { input_ids: promptIds, output_ids: [line.output_ids] });
    assert.deepEqual(
      meta.output_token_logprobs,
      line.output_ids.map((id, index) => [line.logprobs[index], id, null]),
    );
    assert.deepEqual(meta.finish_reason, { type: 'stop', matched: engine.vocabulary.endId });
    assert.equal(meta.weight_version, 'default');
    assert.equal(meta.completion_tokens, line.output_ids.length);
  });

  it('streams what it would have answered, each id once, also with chunks that have no text', async () => {
    const body = {
      ...hi,
      temperature: 0,
      logprobs: true,
      return_token_ids: true,
      return_output_ids: true,
      stream_options: { include_usage: true },
    };
    const whole = await engine.json('/v1/chat/completions', body);
    const events = await engine.events('/v1/chat/completions', body);
    const line = lastLine();
    const choices = events.flatMap((event) => event.choices);
    assert.deepEqual(events[0]!.prompt_token_ids, line.prompt_ids);
    assert.equal(choices[0]!.delta.role, 'assistant');
    assert.deepEqual(
      choices.flatMap((choice) => choice.token_ids ?? []),
      line.output_ids,
    );
    assert.deepEqual(line.output_ids, whole.choices[0].token_ids);
    const logprobs = choices.flatMap((choice) => choice.logprobs?.content ?? []);
    assertSameNumbers(
      logprobs.map(({ logprob }) => logprob),
      line.logprobs,
    );
    assert.equal(choices.map(({ delta }) => delta.content ?? '').join(''), 'Hello, wörld! 👍');
    assert.ok(
      choices.some(({ delta, token_ids: ids }) => delta.content === '' && (ids ?? []).length > 0),
    );
    assert.deepEqual(choices.filter((choice) => choice.finish_reason !== null).length, 1);
    const [sglext, usage] = events.slice(-2);
    assert.deepEqual(sglext!.choices, []);
    assert.deepEqual(sglext!.sglext, { output_ids: [line.output_ids] });
    assert.deepEqual(usage!.choices, []);
    assert.equal(usage!.usage.completion_tokens, line.output_ids.length);
    assert.equal(line.sent_ids, line.output_ids.length);
    assert.equal(line.stream, true);
  });

  it('takes the request id of the header where the body has none', async () => {
    const init = { headers: { 'content-type': 'application/json', 'x-request-id': 'of-header' } };
    const response = await engine.post('/v1/chat/completions', hi, init);
    assert.equal(response.headers.get('x-request-id'), 'of-header');
    assert.equal(((await response.json()) as { id: string }).id, 'of-header');
    assert.equal(lastLine().request_id, 'of-header');
  });

  it('ends at its limit with length, and at a stop string without it', async () => {
    const cut = await engine.json('/v1/chat/completions', { ...hi, max_tokens: 2 });
    assert.equal(cut.choices[0].finish_reason, 'length');
    assert.equal(cut.usage.completion_tokens, 2);
    const stopped = await engine.json('/v1/chat/completions', { ...hi, stop: [', w'] });
    assert.equal(stopped.choices[0].message.content, 'Hello');
    assert.equal(stopped.choices[0].finish_reason, 'stop');
    assert.equal(stopped.choices[0].stop_reason, ', w');
    const events = await engine.events('/v1/chat/completions', { ...hi, stop: ', w' });
    assert.equal(events.map((event) => event.choices[0].delta.content ?? '').join(''), 'Hello');
  });
});

describe('completions', () => {
  it('take ids and give ids, as vLLM does', async () => {
    const prompt = engine.model.render({ messages: [{ role: 'user', content: 'x' }], tools: [] });
    const body = { prompt, max_tokens: 100, logprobs: 2, return_token_ids: true, temperature: 0 };
    const answer = await engine.json('/v1/completions', body);
    const [choice] = answer.choices;
    const line = lastLine();
    assert.equal(choice.text, 'Hello, wörld! 👍');
    assert.deepEqual(choice.prompt_token_ids, prompt);
    assert.deepEqual(choice.token_ids, line.output_ids);
    assertSameNumbers(choice.logprobs!.token_logprobs, line.logprobs);
    assert.equal(choice.logprobs!.text_offset.length, line.output_ids.length);

    const events = await engine.events('/v1/completions', body);
    const choices = events.flatMap((event) => event.choices);
    assert.equal(choices.map(({ text }) => text).join(''), choice.text);
    assert.deepEqual(
      choices.flatMap(({ token_ids: ids }) => ids),
      choice.token_ids,
    );
    assert.deepEqual(choices[0]!.prompt_token_ids, prompt);
    assert.equal(choices.at(-1)!.finish_reason, 'stop');
  });

  it('sample 16 tokens unless told otherwise, and take a text', async () => {
    await using other = await serve({ policy: says('word '.repeat(100)) });
    const answer = await other.json('/v1/completions', { prompt: 'Once' });
    assert.equal(answer.usage.completion_tokens, 16);
    assert.equal(answer.choices[0].finish_reason, 'length');
  });
});

describe('/generate', () => {
  it('answers with text, ids and meta_info', async () => {
    const answer = await engine.json('/generate', {
      text: 'abc',
      sampling_params: { max_new_tokens: 50, temperature: 1 },
      return_logprob: true,
      top_logprobs_num: 2,
      rid: 'native',
    });
    const line = lastLine();
    assert.equal(answer.text, 'Hello, wörld! 👍');
    assert.deepEqual(answer.output_ids, line.output_ids);
    const { meta_info: meta } = answer;
    assert.equal(meta.id, 'native');
    assert.equal(meta.prompt_tokens, line.prompt_ids.length);
    assertSameNumbers(
      meta.output_token_logprobs.map(([logprob]) => logprob!),
      line.logprobs,
    );
    assert.equal(meta.output_top_logprobs[0]!.length, 2);
    assert.deepEqual(meta.input_token_logprobs, []);
  });

  it('reads a chat from ids as the chat route does', async () => {
    await using other = await serve({
      policy: ({ messages, turn }) => ({ content: JSON.stringify({ messages, turn }) }),
    });
    const messages = [
      { role: 'system', content: 'be <|im_end|> kind' },
      { role: 'user', content: 'one' },
      { role: 'assistant', content: 'two' },
      { role: 'user', content: 'three' },
    ] as const;
    const input = other.model.render({ messages, tools: [] });
    const answer = await other.json('/generate', { input_ids: input, sampling_params: { max_new_tokens: 500 } }); // prettier-ignore
    assert.deepEqual(JSON.parse(answer.text), { messages, turn: 1 });
    const chat = await other.json('/v1/chat/completions', { messages });
    assert.deepEqual(JSON.parse(chat.choices[0].message.content), { messages, turn: 1 });
  });

  it('streams all text so far in every event', async () => {
    const events = await engine.events('/generate', { text: 'abc', return_logprob: true });
    const line = lastLine();
    let before = '';
    for (const { text, output_ids: ids, meta_info: meta } of events) {
      assert.ok(text.startsWith(before));
      assert.deepEqual(ids, line.output_ids.slice(0, ids.length));
      assert.equal(meta.output_token_logprobs.length, ids.length);
      before = text;
    }
    const last = events.at(-1)!;
    assert.equal(last.text, 'Hello, wörld! 👍');
    assert.equal(last.meta_info.finish_reason?.type, 'stop');
    assert.ok(events.slice(0, -1).every(({ meta_info: meta }) => meta.finish_reason === null));
    assert.deepEqual(last.output_ids, line.output_ids);
  });

  it('takes a batch, one line of the log each', async () => {
    const before = engine.log().length;
    const answers = await engine.json<Answer[]>('/generate', {
      input_ids: [[1, 2], [3, 4], [5]],
      rid: 'batch',
    });
    assert.deepEqual(
      answers.map((answer) => answer.meta_info.id),
      ['batch_0', 'batch_1', 'batch_2'],
    );
    const lines = engine.log().slice(before);
    assert.deepEqual(lines.map((line) => line.prompt_ids).sort(), [[1, 2], [3, 4], [5]]);
  });

  it('scores given ids with no token sampled, as it scored them when it sampled them', async () => {
    const sampled = await engine.json('/generate', { input_ids: [7, 8, 9], return_logprob: true });
    const outputIds = sampled.output_ids as number[];
    const scored = await engine.json('/generate', {
      input_ids: [7, 8, 9, ...outputIds],
      sampling_params: { max_new_tokens: 0, temperature: 0 },
      return_logprob: true,
      logprob_start_len: 2,
    });
    const [first, ...rest] = scored.meta_info.input_token_logprobs;
    assert.deepEqual(first, [null, 9, null]);
    assert.deepEqual(rest, sampled.meta_info.output_token_logprobs);
    assert.equal(scored.meta_info.completion_tokens, 0);
    assert.deepEqual(lastLine().output_ids, []);
  });
});

function assertSameNumbers(actual: readonly number[], expected: readonly number[]): void {
  assert.equal(actual.length, expected.length);
  assert.ok(actual.every((value, index) => Object.is(value, expected[index])));
}
