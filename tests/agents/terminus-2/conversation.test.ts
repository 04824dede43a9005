import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { ChatHistory, userMessage } from '../../../src/agents/terminus-2/chat-history.ts';
import type { ModelReply } from '../../../src/agents/terminus-2/model-queries.ts';
import { ConversationDetails } from '../../../src/agents/terminus-2/rollout-details.ts';
import { RunLedger } from '../../../src/agents/terminus-2/run-ledger.ts';
import type { ModelResult } from '../../../src/engines/model-call.ts';

function resultOf(fields: Partial<ModelResult> = {}): ModelResult {
  return {
    requestId: 'r',
    text: 'reply',
    reasoning: null,
    toolCalls: [],
    finishReason: 'stop',
    stopString: null,
    promptIds: null,
    outputIds: null,
    logprobs: null,
    weightVersion: null,
    usage: null,
    model: null,
    extra: {},
    ...fields,
  };
}

const usage = (
  promptTokens: number,
  completionTokens: number,
  cachedTokens: number | null = null,
) => ({
  promptTokens,
  completionTokens,
  cachedTokens,
  reasoningTokens: null,
});

const replied = { role: 'assistant', content: 'reply' } as const;

describe('the history of a conversation', () => {
  test('counts what the engine counted, and estimates where it says nothing', () => {
    const history = new ChatHistory();
    assert.equal(history.tokens, 0);
    history.add('first', replied, resultOf({ usage: usage(100, 20) }));
    assert.equal(history.tokens, 120);
    history.add('x'.repeat(300), replied, resultOf());
    const estimated: number = history.tokens;
    assert.ok(estimated > 220 && estimated < 260, String(estimated));
    history.add('third', replied, resultOf({ promptIds: [1, 2, 3], outputIds: [4] }));
    assert.equal(history.tokens, 4);
  });

  test('drops the newest turns until it is short enough, never its first message', () => {
    const history = new ChatHistory();
    for (const [index, tokens] of [100, 200, 300].entries())
      history.add(`prompt ${index}`, replied, resultOf({ usage: usage(tokens - 5, 5) }));
    assert.equal(history.unwind(300), false);
    assert.equal(history.unwind(250), true);
    assert.equal(history.tokens, 200);
    assert.equal(history.messages.length, 4);
    assert.equal(history.unwind(-1), true);
    assert.deepEqual(history.messages, [userMessage('prompt 0')]);
  });
});

describe('rollout details', () => {
  test('hold one entry per turn for every field that any turn has', () => {
    const details = new ConversationDetails();
    const isTold = false;
    details.add(
      resultOf({ promptIds: [1, 2], outputIds: [3], logprobs: [-0.5], extra: { a: 1 } }),
      { isTold },
    );
    details.add(resultOf({ extra: { b: [2] } }), { isTold });
    details.add(resultOf({ outputIds: [4, 5], logprobs: null }), { isTold });
    assert.deepEqual(details.toDetail(), {
      prompt_token_ids: [[1, 2], [], []],
      completion_token_ids: [[3], [], [4, 5]],
      logprobs: [[-0.5], [], []],
      extra: { a: [1, null, null], b: [null, [2], null] },
    });
  });

  test('are nothing when nothing was collected, and have no log-probabilities without ids', () => {
    const details = new ConversationDetails();
    assert.equal(details.toDetail(), null);
    details.add(resultOf({ logprobs: [-1] }), { isTold: false });
    assert.equal(details.toDetail(), null);
  });
});

describe('the ledger of a run', () => {
  const reply = (fields: Partial<ModelResult>): ModelReply => ({
    result: resultOf(fields),
    durationMs: 5,
  });
  const modelInfo = {
    input_cost_per_token: 0.5,
    output_cost_per_token: 2,
    cache_read_input_token_cost: 0.25,
  };

  test('adds up the main conversation and side calls, and prices them', () => {
    const ledger = new RunLedger({ modelInfo, secrets: [], collectsRolloutDetails: true });
    ledger.addTurn(reply({ usage: usage(10, 3, 4), outputIds: [1], promptIds: [2] }), []);
    ledger.addSubagent(reply({ promptIds: [1, 2], outputIds: [3] }), []);
    ledger.episodes = 1;
    ledger.summaries = 1;
    assert.deepEqual(ledger.toResult(null), {
      n_input_tokens: 12,
      n_output_tokens: 4,
      n_cache_tokens: 4,
      cost_usd: 6 * 0.5 + 4 * 0.25 + 3 * 2 + 2 * 0.5 + 2,
      rollout_details: [
        { prompt_token_ids: [[2]], completion_token_ids: [[1]] },
        { prompt_token_ids: [[1, 2]], completion_token_ids: [[3]] },
      ],
      metadata: { n_episodes: 1, api_request_times_msec: [5], summarization_count: 1 },
    });
  });

  test('says no cost without prices, no details unless they are collected, and all messages when asked', () => {
    const ledger = new RunLedger({ modelInfo: {}, secrets: [], collectsRolloutDetails: false });
    ledger.addTurn(reply({ usage: usage(1, 1), outputIds: [1] }), []);
    const result = ledger.toResult([userMessage('hi')]);
    assert.equal(result.cost_usd, null);
    assert.deepEqual(result.rollout_details, []);
    assert.deepEqual(result.metadata?.['all_messages'], [{ role: 'user', content: 'hi' }]);
  });

  test('gives away no ids of a conversation from where a known secret is in it', () => {
    const secrets = ['hunter2-hunter2'];
    const ledger = new RunLedger({ modelInfo: {}, secrets, collectsRolloutDetails: true });
    const ids = { promptIds: [1], outputIds: [2], logprobs: [-1] };
    ledger.addTurn(reply(ids), [userMessage('hi')]);
    ledger.addTurn(reply({ ...ids, reasoning: 'it is hunter2-hunter2' }), [userMessage('hi')]);
    ledger.addTurn(reply(ids), [userMessage('hi')]);
    ledger.addSubagent(reply(ids), [userMessage('the key is hunter2-hunter2')]);
    ledger.addSubagent(reply(ids), [userMessage('hi')]);
    assert.deepEqual(ledger.toResult(null).rollout_details, [
      {
        prompt_token_ids: [[1], [], []],
        completion_token_ids: [[2], [], []],
        logprobs: [[-1], [], []],
      },
      { prompt_token_ids: [[1]], completion_token_ids: [[2]], logprobs: [[-1]] },
    ]);
  });
});
