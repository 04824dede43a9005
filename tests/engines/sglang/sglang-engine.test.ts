import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { isRolloutError, type ErrorCode } from '../../../src/core/errors.ts';
import { never } from '../../../src/core/linked-abort.ts';
import type { ModelResult } from '../../../src/engines/model-call.ts';
import { sendEvents, sendJson } from '../shared/fake-host.ts';
import { chatRequest, partsOf, resultOf, withEngine } from '../shared/requests.ts';

type Fields = Record<string, unknown>;

const input = { kind: 'tokens', ids: [1, 2, 3] } as const;
const pairs = [
  [-0.5, 40, null],
  [-0.25, 41, null],
  [-1e-9, 42, null],
];
const meta = (count: number, rest: Fields = {}): Fields => ({
  id: 'r1',
  prompt_tokens: 3,
  completion_tokens: count,
  cached_tokens: 1,
  weight_version: '5',
  finish_reason: null,
  ...rest,
});
const stop = { finish_reason: { type: 'stop', matched: 42 } };
const expected: ModelResult = {
  requestId: 'r1',
  text: 'haha!',
  reasoning: null,
  toolCalls: [],
  finishReason: 'stop',
  stopString: null,
  promptIds: [1, 2, 3],
  outputIds: [40, 41, 42],
  logprobs: [-0.5, -0.25, -1e-9],
  weightVersion: '5',
  usage: { promptTokens: 3, completionTokens: 3, cachedTokens: 1, reasoningTokens: null },
  model: null,
  extra: { matched: 42 },
};
const coded = (code: ErrorCode) => (error: unknown) => isRolloutError(error, code);

async function readStream(documents: readonly unknown[], wantsTokens = true) {
  return await withEngine(
    'sglang',
    (asked, response) => {
      if (asked.target !== '/generate') return void response.end();
      sendEvents(response, [...documents, '[DONE]']);
      response.end();
    },
    async (engine) =>
      await partsOf(
        await engine.generate(
          chatRequest({ requestId: 'r1', input, isStreaming: true, wantsTokens }),
          never,
        ),
      ),
  );
}

describe('the SGLang client on /generate', () => {
  it('sends ids, sampling and the request id, and reads a whole answer', async () => {
    await withEngine(
      'sglang',
      (_, response) =>
        sendJson(response, {
          text: 'haha!',
          output_ids: [40, 41, 42],
          meta_info: meta(3, { ...stop, output_token_logprobs: pairs, e2e_latency: 0.5 }),
        }),
      async (engine, host) => {
        const request = chatRequest({
          requestId: 'r1',
          model: null,
          input,
          sampling: { maxTokens: 9, temperature: 0.5, seed: 3, stop: ['x'] },
          extraBody: { sampling_params: { no_stop_trim: true, seed: 1 }, lora_path: 'l' },
        });
        assert.deepEqual(await resultOf(engine, request), {
          ...expected,
          extra: { matched: 42, meta_info: { e2e_latency: 0.5 } },
        });
        assert.deepEqual(host.asked[0]?.body, {
          input_ids: [1, 2, 3],
          rid: 'r1',
          stream: false,
          return_logprob: true,
          lora_path: 'l',
          sampling_params: {
            max_new_tokens: 9,
            temperature: 0.5,
            stop: ['x'],
            sampling_seed: 3,
            no_stop_trim: true,
            seed: 1,
          },
        });
      },
    );
  });

  const streams: readonly (readonly [string, readonly Fields[]])[] = [
    [
      'cumulative',
      [
        { text: 'ha', meta_info: meta(1, { output_token_logprobs: pairs.slice(0, 1) }) },
        { text: 'haha', meta_info: meta(2, { output_token_logprobs: pairs.slice(0, 2) }) },
        { text: 'haha!', meta_info: meta(3, { ...stop, output_token_logprobs: pairs }) },
      ],
    ],
    [
      'cumulative, several tokens at once and a repeated chunk',
      [
        { text: 'haha', meta_info: meta(2, { output_token_logprobs: pairs.slice(0, 2) }) },
        { text: 'haha', meta_info: meta(2, { output_token_logprobs: pairs.slice(0, 2) }) },
        { text: 'haha!', meta_info: meta(3, { ...stop, output_token_logprobs: pairs }) },
      ],
    ],
    [
      'of new tokens only, where the text repeats itself',
      [
        { text: 'ha', meta_info: meta(1, { output_token_logprobs: pairs.slice(0, 1) }) },
        { text: 'ha', meta_info: meta(2, { output_token_logprobs: pairs.slice(1, 2) }) },
        { text: '!', meta_info: meta(3, { ...stop, output_token_logprobs: pairs.slice(2) }) },
      ],
    ],
  ];
  for (const [what, documents] of streams)
    it(`reads a stream that is ${what}`, async () => {
      const parts = await readStream(documents);
      const text = parts.map((part) => (part.type === 'text-delta' ? part.text : '')).join('');
      const ids = parts.flatMap((part) => (part.type === 'tokens-delta' ? part.ids : []));
      const logprobs = parts.flatMap((part) =>
        part.type === 'tokens-delta' ? (part.logprobs ?? []) : [],
      );
      assert.equal(text, 'haha!');
      assert.deepEqual(ids, [40, 41, 42]);
      assert.deepEqual(logprobs, expected.logprobs);
      assert.deepEqual(parts.at(-1), { type: 'end', result: expected });
    });

  it('reads text alone, cumulative and taken back at a stop string', async () => {
    const parts = await readStream(
      [
        { text: 'a', meta_info: meta(1) },
        { text: 'a b ST', meta_info: meta(2) },
        { text: 'a b ', meta_info: meta(3, { finish_reason: { type: 'stop', matched: 'STOP' } }) },
      ],
      false,
    );
    const last = parts.at(-1);
    assert.ok(last?.type === 'end');
    assert.equal(last.result.text, 'a b ');
    assert.deepEqual([last.result.promptIds, last.result.outputIds], [null, null]);
  });

  it('rejects ids whose number fits neither kind of stream', async () => {
    const parts = await readStream([
      { text: 'ha', meta_info: meta(2, { output_token_logprobs: pairs.slice(0, 2) }) },
      { text: 'haha!', meta_info: meta(6, { ...stop, output_token_logprobs: pairs }) },
    ]);
    const last = parts.at(-1);
    assert.ok(last?.type === 'end');
    assert.equal(last.result.outputIds, null);
    assert.equal(
      last.result.extra['tokens_rejected'],
      '3 log-probabilities at 6 of completion_tokens',
    );
  });

  it('tells no ids behind those that it rejects: a stream that breaks off has no hole', async () => {
    const parts = await readStream([
      { text: 'h', meta_info: meta(1, { output_token_logprobs: pairs.slice(0, 1) }) },
      { text: 'a', meta_info: meta(4, { output_token_logprobs: pairs.slice(1, 2) }) },
      { text: '!', meta_info: meta(5, { ...stop, output_token_logprobs: pairs.slice(2) }) },
    ]);
    const ids = parts.flatMap((part) => (part.type === 'tokens-delta' ? part.ids : []));
    assert.deepEqual(ids, [40]);
  });

  const finishes: readonly (readonly [string, Fields, string])[] = [
    ['length', { type: 'length', length: 3 }, 'length'],
    ['an abort that was asked for', { type: 'abort', message: 'Aborted' }, 'abort'],
    ['an abort for lack of room', { type: 'abort', status_code: 503 }, 'ENGINE_OVERLOADED'],
    [
      'an abort because of length',
      { type: 'abort', status_code: 400, message: "longer than the model's context length" },
      'CONTEXT_OVERFLOW',
    ],
    ['a failure', { type: 'abort', status_code: 500, message: 'CUDA' }, 'ENGINE_UNAVAILABLE'],
  ];
  for (const [what, finish, outcome] of finishes)
    it(`ends with ${outcome} on ${what}`, async () => {
      const reading = readStream([{ text: 'ha', meta_info: meta(1, { finish_reason: finish }) }]);
      if (outcome === outcome.toUpperCase())
        await assert.rejects(reading, coded(outcome as ErrorCode));
      else {
        const last = (await reading).at(-1);
        assert.ok(last?.type === 'end');
        assert.equal(last.result.finishReason, outcome);
      }
    });

  it('takes an answer without meta_info for invalid', async () => {
    await assert.rejects(readStream([{ text: 'ha' }]), coded('ENGINE_RESPONSE_INVALID'));
  });
});

describe('the SGLang client', () => {
  it('asks its chat for ids where a stream and a whole answer can have them', async () => {
    for (const isStreaming of [false, true])
      await withEngine(
        'sglang',
        (_, response) =>
          sendJson(response, { choices: [{ message: { content: '' }, finish_reason: 'stop' }] }),
        async (engine, host) => {
          await resultOf(engine, chatRequest({ requestId: 'r1', isStreaming }));
          const { target, body } = host.asked[0]!;
          assert.equal(target, '/v1/chat/completions');
          assert.equal(body['rid'], 'r1');
          assert.equal(body['logprobs'], true);
          assert.equal(body['return_output_ids_in_sglext'], true);
          assert.equal(body['return_input_ids_in_sglext'], true);
          assert.equal(body['return_token_ids'], isStreaming ? undefined : true);
          assert.equal(body['return_meta_info'], isStreaming ? undefined : true);
        },
      );
  });

  it('tells the engine to abort when the signal fires, and does not wait for it', async () => {
    await withEngine(
      'sglang',
      (asked, response) => {
        // The abort is never answered.
        if (asked.target === '/generate')
          sendEvents(response, [{ text: 'ha', meta_info: meta(1) }]);
      },
      async (engine, host) => {
        const controller = new AbortController();
        const request = chatRequest({ requestId: 'r1', input, isStreaming: true });
        const call = await engine.generate(request, controller.signal);
        const reason = new Error('enough');
        controller.abort(reason);
        await assert.rejects(partsOf(call), reason);
        await host.until(() => host.asked.some(({ target }) => target === '/abort_request'));
        assert.deepEqual(host.asked.at(-1)?.body, { rid: 'r1' });
        await engine.close();
      },
    );
  });

  it('does not abort what has ended or was refused', async () => {
    await withEngine(
      'sglang',
      (asked, response) =>
        asked.body['rid'] === 'good'
          ? sendJson(response, { text: '', meta_info: meta(0, stop) })
          : sendJson(response, 'no', { status: 500 }),
      async (engine, host) => {
        await resultOf(engine, chatRequest({ requestId: 'good', input }));
        await assert.rejects(resultOf(engine, chatRequest({ requestId: 'bad', input })));
        await engine.close();
        assert.equal(host.asked.length, 2);
      },
    );
  });

  it('controls by the routes and bodies that SGLang has', async () => {
    await withEngine(
      'sglang',
      (_, response) => sendJson(response, {}),
      async (engine, host) => {
        await engine.abort('r1', never);
        await engine.abortAll(never);
        await engine.pause('retract', never);
        await engine.continue(never);
        assert.deepEqual(
          host.asked.map(({ method, target, body }) => [method, target, body]),
          [
            ['POST', '/abort_request', { rid: 'r1' }],
            ['POST', '/abort_request', { abort_all: true }],
            ['POST', '/pause_generation', { mode: 'retract' }],
            ['POST', '/continue_generation', {}],
          ],
        );
      },
    );
  });

  const healths: readonly (readonly [string, Record<string, Fields>, Fields])[] = [
    [
      'present',
      { '/model_info': { model_path: 'm', weight_version: '3' } },
      { isHealthy: true, model: 'm', weightVersion: '3' },
    ],
    [
      'older',
      { '/get_model_info': { model_path: 'm' }, '/get_weight_version': { weight_version: '2' } },
      { isHealthy: true, model: 'm', weightVersion: '2' },
    ],
    ['oldest', {}, { isHealthy: true, model: null, weightVersion: null }],
  ];
  for (const [age, routes, health] of healths)
    it(`reads health from ${age} routes`, async () => {
      await withEngine(
        'sglang',
        (asked, response) => {
          if (asked.target === '/health') return void response.end();
          const document = routes[asked.target];
          sendJson(response, document ?? {}, { status: document === undefined ? 404 : 200 });
        },
        async (engine) => assert.deepEqual(await engine.health(never), health),
      );
    });

  it('reads load from the present route, and from the older one where that is missing', async () => {
    const rank = { num_running_reqs: 2, num_waiting_reqs: 1, token_usage: 0.25 };
    for (const isOld of [false, true])
      await withEngine(
        'sglang',
        (asked, response) => {
          if (asked.target === '/v1/loads?include=core') {
            sendJson(
              response,
              { loads: [rank, { ...rank, token_usage: 0.5 }] },
              { status: isOld ? 404 : 200 },
            );
            return;
          }
          assert.equal(asked.target, '/get_load');
          sendJson(response, [{ dp_rank: 0, num_reqs: 3, num_waiting_reqs: 1, num_tokens: 9 }]);
        },
        async (engine) =>
          assert.deepEqual(
            await engine.load(never),
            isOld
              ? { runningRequests: 2, waitingRequests: 1, kvUse: null }
              : { runningRequests: 4, waitingRequests: 2, kvUse: 0.5 },
          ),
      );
  });
});
