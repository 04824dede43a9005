import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { isRolloutError } from '../../../src/core/errors.ts';
import { never } from '../../../src/core/linked-abort.ts';
import { loadOfMetrics } from '../../../src/engines/vllm/metrics.ts';
import { sendEvents, sendJson } from '../shared/fake-host.ts';
import { chatRequest, partsOf, resultOf, withEngine } from '../shared/requests.ts';

const choice = {
  index: 0,
  text: ' world',
  token_ids: [7, 8],
  logprobs: { token_logprobs: [-0.25, -1e-12], tokens: [' wor', 'ld'] },
  finish_reason: 'length',
  stop_reason: null,
  prompt_token_ids: [1, 2, 3],
};
const usage = { prompt_tokens: 3, completion_tokens: 2 };
const tokens = { kind: 'tokens', ids: [1, 2, 3] } as const;

describe('the vLLM client', () => {
  it('completes ids through /v1/completions, whole and streamed alike', async () => {
    const results = [];
    for (const isStreaming of [false, true])
      results.push(
        await withEngine(
          'vllm',
          (asked, response) => {
            assert.equal(asked.target, '/v1/completions');
            if (isStreaming) {
              const [first, second] = choice.logprobs.token_logprobs;
              sendEvents(response, [
                {
                  model: 'm',
                  choices: [
                    {
                      ...choice,
                      text: '',
                      token_ids: [7],
                      logprobs: { token_logprobs: [first] },
                      finish_reason: null,
                    },
                  ],
                },
                {
                  choices: [
                    {
                      ...choice,
                      prompt_token_ids: null,
                      token_ids: [8],
                      logprobs: { token_logprobs: [second] },
                    },
                  ],
                },
                { choices: [], usage },
                '[DONE]',
              ]);
              response.end();
            } else sendJson(response, { model: 'm', choices: [choice], usage });
          },
          async (engine, host) => {
            const result = await resultOf(
              engine,
              chatRequest({
                requestId: 'r1',
                input: tokens,
                isStreaming,
                sampling: { maxTokens: 2, topK: 5, stopTokenIds: [9], seed: 4 },
              }),
            );
            assert.deepEqual(host.asked[0]?.body, {
              model: 'small',
              prompt: [1, 2, 3],
              max_tokens: 2,
              top_k: 5,
              stop_token_ids: [9],
              seed: 4,
              stream: isStreaming,
              ...(isStreaming && { stream_options: { include_usage: true } }),
              logprobs: 1,
              return_token_ids: true,
            });
            return result;
          },
        ),
      );
    assert.deepEqual(results[0], {
      requestId: 'r1',
      text: ' world',
      reasoning: null,
      toolCalls: [],
      finishReason: 'length',
      stopString: null,
      promptIds: [1, 2, 3],
      outputIds: [7, 8],
      logprobs: [-0.25, -1e-12],
      weightVersion: null,
      usage: { promptTokens: 3, completionTokens: 2, cachedTokens: null, reasoningTokens: null },
      model: 'm',
      extra: {},
    });
    assert.deepEqual(results[1], results[0]);
  });

  it('reads the first choice of several, and trusts no counts that are of all of them', async () => {
    const other = { ...choice, index: 1, text: 'other', token_ids: [9, 9] };
    const usageOfBoth = { prompt_tokens: 3, completion_tokens: 4 };
    await withEngine(
      'vllm',
      (_, response) =>
        sendJson(response, { choices: [{ ...choice, index: 0 }, other], usage: usageOfBoth }),
      async (engine) => {
        const request = { input: tokens, extraBody: { n: 2 } };
        const result = await resultOf(engine, chatRequest(request));
        assert.equal(result.text, choice.text);
        assert.equal(result.outputIds, null);
      },
    );
  });

  it('aborts a call of its own by closing its connection; unknown ids are no error', async () => {
    await withEngine(
      'vllm',
      (_, response) => sendEvents(response, [{ choices: [{ delta: { content: 'Hi' } }] }]),
      async (engine, host) => {
        const call = await engine.generate(
          chatRequest({ requestId: 'r1', isStreaming: true }),
          never,
        );
        await engine.abort('r0', never);
        await engine.abort('r1', never);
        await engine.abort('r1', never);
        await assert.rejects(partsOf(call), (error) => isRolloutError(error, 'CANCELLED'));
        await host.until(() => host.cut > 0);
      },
    );
  });

  it('says what it does not offer', async () => {
    await withEngine(
      'vllm',
      () => undefined,
      async (engine) => {
        for (const ask of [
          () => engine.abortAll(never),
          () => engine.pause('abort', never),
          () => engine.continue(never),
        ])
          await assert.rejects(ask, (error) => isRolloutError(error, 'ENGINE_UNSUPPORTED'));
      },
    );
  });

  it('asks for health, the only model, ids of a text and load', async () => {
    await withEngine(
      'vllm',
      (asked, response) => {
        if (asked.target === '/health') response.end();
        if (asked.target === '/v1/models') sendJson(response, { data: [{ id: 'm' }] });
        if (asked.target === '/tokenize') sendJson(response, { count: 2, tokens: [5, 6] });
        if (asked.target === '/metrics')
          response.end('vllm:num_requests_running 1\nvllm:num_requests_waiting 2\n');
      },
      async (engine, host) => {
        const health = { isHealthy: true, model: 'm', weightVersion: null };
        assert.deepEqual(await engine.health(never), health);
        assert.deepEqual(await engine.tokenize('a b', never), [5, 6]);
        assert.deepEqual(host.asked.at(-1)?.body, { prompt: 'a b', add_special_tokens: false });
        const load = { runningRequests: 1, waitingRequests: 2, kvUse: null };
        assert.deepEqual(await engine.load(never), load);
      },
    );
  });
});

describe('the metrics of vLLM', () => {
  it('are summed over ranks, the fullest cache counts', () => {
    const text = [
      '# HELP vllm:num_requests_running Number of requests in model execution batches.',
      '# TYPE vllm:num_requests_running gauge',
      'vllm:num_requests_running{engine="0",model_name="a b} c"} 3.0',
      'vllm:num_requests_running{engine="1",model_name="a b} c"} 2.0',
      'vllm:num_requests_waiting{engine="0"} 1.0',
      'vllm:num_requests_waiting{engine="1"} 0.0',
      'vllm:num_requests_waiting_total{engine="1"} 50.0',
      'vllm:kv_cache_usage_perc{engine="0"} 0.25',
      'vllm:kv_cache_usage_perc{engine="1"} 0.5',
    ].join('\n');
    assert.deepEqual(loadOfMetrics(text), { runningRequests: 5, waitingRequests: 1, kvUse: 0.5 });
  });

  it('of the older name are read, and those of another server are not', () => {
    const older =
      'vllm:num_requests_running 0\nvllm:num_requests_waiting 0\nvllm:gpu_cache_usage_perc 1e-3\n';
    assert.equal(loadOfMetrics(older)?.kvUse, 0.001);
    assert.equal(loadOfMetrics('sglang:num_running_reqs 1\n'), null);
  });
});
