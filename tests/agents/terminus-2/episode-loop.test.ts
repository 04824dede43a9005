import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { terminalEnded } from '../../../src/agents/terminus-2/prompts/episode-prompts.ts';
import { RolloutError, isRolloutError } from '../../../src/core/errors.ts';
import type { AtifStep } from '../../../src/wire/atif/atif.ts';
import { done, inOrder, json, runLoop } from './loop-bench.ts';
import { silence, type ScriptedReply } from './scripted-engine.ts';

const stepsOf = (run: { readonly main: { readonly steps: readonly AtifStep[] } | undefined }) =>
  run.main?.steps ?? [];
const shown = (step: AtifStep | undefined): unknown => step?.observation?.results[0]?.content;

describe('the loop of terminus-2', () => {
  test('types the commands of a reply in order, reads once, and sends on what it read', async () => {
    const run = await runLoop({
      script: inOrder(json({ commands: ['ls\n', ['make\n', 300], ['C-c', -1]] }), done, done),
    });
    assert.equal(run.error, null);
    assert.deepEqual(run.typed, [
      ['ls\n', 0.1],
      ['make\n', 60],
      ['C-c', 0],
    ]);
    assert.deepEqual(run.engine.contents(1).slice(-1), ['<output 1>']);
    assert.equal(run.engine.calls.length, 3);
    assert.equal(run.result?.metadata?.['n_episodes'], 3);
  });

  test('is done only when the model says so twice in a row, and types what comes with it both times', async () => {
    const saying = json({ commands: ['echo last\n'], isComplete: true });
    const run = await runLoop({
      script: inOrder(saying, json({ commands: ['no\n'] }), saying, 'not json', saying),
    });
    assert.equal(run.error, null);
    assert.deepEqual(
      run.typed.map(([keys]) => keys),
      ['echo last\n', 'no\n', 'echo last\n', 'echo last\n'],
    );
    // An unusable reply is neither yes nor no.
    assert.equal(run.engine.calls.length, 5);
    const steps = stepsOf(run);
    assert.notEqual(shown(steps[1]), '<output 1>');
    assert.ok(String(shown(steps[1])).includes('<output 1>'));
    assert.equal(shown(steps[5]), '<output 4>');
  });

  test('records a turn with its calls, its observation, and the ids of exactly its own call', async () => {
    const run = await runLoop({
      script: inOrder(
        {
          text: json({ analysis: 'A', plan: 'P', commands: [['ls\n', 99]] }),
          reasoning: 'hm',
          usage: { promptTokens: 7, completionTokens: 5, cachedTokens: 4, reasoningTokens: null },
          weightVersion: 'w1',
        },
        json({ commands: ['a\n', 'b\n'], isComplete: true }),
        done,
      ),
      kwargs: {
        model_info: { input_cost_per_token: 1, output_cost_per_token: 1 },
      },
    });
    const replies = run.engine.calls.map(({ result }) => result!);
    const first = replies[0]!;
    const steps = stepsOf(run);
    assert.deepEqual(
      steps.map(({ source, step_id }) => [source, step_id]),
      [
        ['user', 1],
        ['agent', 2],
        ['agent', 3],
        ['agent', 4],
      ],
    );
    const { timestamp, ...turn } = steps[1]!;
    assert.match(timestamp ?? '', /^2030-/);
    assert.deepEqual(turn, {
      step_id: 2,
      source: 'agent',
      model_name: 'scripted-model',
      message: 'Analysis: A\nPlan: P',
      reasoning_content: 'hm',
      tool_calls: [
        {
          tool_call_id: 'call_0_1',
          function_name: 'bash_command',
          arguments: { keystrokes: 'ls\n', duration: 60 },
        },
      ],
      observation: { results: [{ source_call_id: 'call_0_1', content: '<output 1>' }] },
      metrics: {
        prompt_tokens: 7,
        completion_tokens: 5,
        cached_tokens: 4,
        cost_usd: 12,
        prompt_token_ids: first.promptIds,
        completion_token_ids: first.outputIds,
        logprobs: first.logprobs,
        extra: { request_id: first.requestId, finish_reason: 'stop', weight_version: 'w1' },
      },
      llm_call_count: 1,
    });
    assert.deepEqual(
      steps[2]!.tool_calls?.map((call) => [call.tool_call_id, call.function_name]),
      [
        ['call_1_1', 'bash_command'],
        ['call_1_2', 'bash_command'],
        ['call_1_task_complete', 'mark_task_complete'],
      ],
    );
    assert.equal(steps[2]!.observation?.results[0]?.source_call_id, undefined);
    for (const [index, result] of replies.entries())
      assert.deepEqual(steps[index + 1]!.metrics?.completion_token_ids, result.outputIds);
    assert.deepEqual(run.result?.rollout_details, [
      {
        prompt_token_ids: replies.map((result) => result.promptIds),
        completion_token_ids: replies.map((result) => result.outputIds),
        logprobs: replies.map((result) => result.logprobs),
      },
    ]);
    assert.deepEqual(run.main?.final_metrics, {
      total_prompt_tokens: 13,
      total_completion_tokens: 9,
      total_cached_tokens: 4,
      total_cost_usd: 22,
      total_steps: 4,
    });
  });

  test('shows replies as they came with raw content', async () => {
    const text = json({ commands: ['ls\n'] });
    const run = await runLoop({
      script: inOrder(text, done, done),
      kwargs: { trajectory_config: { raw_content: true } },
    });
    const [, turn] = stepsOf(run);
    assert.equal(turn?.message, text);
    assert.equal(turn.tool_calls, undefined);
    assert.deepEqual(turn.observation?.results, [{ content: '<output 1>' }]);
  });

  const unusable: readonly (readonly [title: string, reply: ScriptedReply])[] = [
    ['text that is not JSON', 'I will just chat.'],
    ['nothing', ''],
    ['reasoning only', { text: '', reasoning: 'thinking' }],
    [
      'tool calls that nobody asked for',
      {
        text: '',
        toolCalls: [{ id: 'c', name: 'ls', arguments: '{}' }],
        finishReason: 'tool_calls',
      },
    ],
    ['another root', '[1, 2]'],
    ['commands of the wrong type', '{"analysis": "", "plan": "", "commands": [1]}'],
  ];
  for (const [title, reply] of unusable)
    test(`answers ${title} with what was wrong, in a turn of its own`, async () => {
      const run = await runLoop({ script: inOrder(reply, done, done) });
      assert.equal(run.error, null);
      assert.deepEqual(run.typed, []);
      const feedback = run.engine.contents(1).at(-1);
      assert.match(String(feedback), /^Previous response had parsing errors:\nERROR: /);
      const [, turn] = stepsOf(run);
      assert.equal(turn?.message, run.engine.calls[0]?.result?.text);
      assert.equal(shown(turn), feedback);
      assert.deepEqual(turn?.metrics?.completion_token_ids, run.engine.calls[0]?.result?.outputIds);
      assert.equal(stepsOf(run).length, 4);
    });

  test('tells a reply that was cut off that nothing of it ran, with the limit it knows', async () => {
    const cut = { text: json({ commands: ['ls\n'] }), finishReason: 'length' as const };
    for (const [limit, words] of [
      [512, /512/],
      [undefined, /the maximum output length/],
    ] as const) {
      const run = await runLoop({
        script: inOrder(cut, done, done),
        kwargs: limit === undefined ? {} : { model_info: { max_output_tokens: limit } },
      });
      assert.deepEqual(run.typed, []);
      const messages = run.engine.contents(1);
      assert.equal(messages[1], cut.text);
      assert.match(String(messages[2]), words);
      assert.equal(stepsOf(run)[1]?.metrics?.extra?.['finish_reason'], 'length');
    }
  });

  test('types what is whole of a cut XML reply, and warns', async () => {
    const whole =
      '<response><analysis>a</analysis><plan>p</plan><commands><keystrokes duration="0.1">ls\n</keystrokes></commands></response>';
    const cut = { text: `${whole} and then I wou`, finishReason: 'length' as const };
    const end =
      '<response><analysis>a</analysis><plan>p</plan><commands></commands><task_complete>true</task_complete></response>';
    const run = await runLoop({
      script: inOrder(cut, end, end),
      kwargs: { parser_name: 'xml' },
    });
    assert.equal(run.error, null);
    assert.deepEqual(run.typed, [['ls\n', 0.1]]);
    const messages = run.engine.contents(1);
    assert.equal(messages[1], cut.text);
    assert.match(String(messages[2]), /^Previous response had warnings:/);
    assert.ok(String(messages[2]).endsWith('<output 1>'));
  });

  test('puts warnings before the output, and drops them on completion', async () => {
    const noisy = `so: ${json({ commands: ['ls\n'] })}`;
    const run = await runLoop({ script: inOrder(noisy, `so: ${done}`, done) });
    assert.match(
      String(run.engine.contents(1).at(-1)),
      /^Previous response had warnings:\n[^]*<output 1>$/,
    );
    assert.doesNotMatch(String(run.engine.contents(2).at(-1)), /had warnings/);
  });

  test('ends after its turns, also when all of them were unusable', async () => {
    const run = await runLoop({ script: () => 'hm', kwargs: { max_turns: 3 } });
    assert.equal(run.error, null);
    assert.equal(run.engine.calls.length, 3);
    assert.equal(run.result?.metadata?.['n_episodes'], 3);
  });

  test('ends quietly when its terminal has gone', async () => {
    let looks = 0;
    const run = await runLoop({
      script: inOrder(json({ commands: ['exit\n'] })),
      terminal: { isAlive: () => Promise.resolve(looks++ < 1) },
    });
    assert.equal(run.error, null);
    assert.equal(run.engine.calls.length, 1);
    assert.equal(stepsOf(run).length, 2);
  });

  test('ends quietly when its terminal goes between two commands', async () => {
    let isAlive = true;
    const send = (): Promise<void> => {
      isAlive = false;
      return Promise.reject(new RolloutError('EXEC_FAILED', 'no session', { phase: 'agent' }));
    };
    const run = await runLoop({
      script: inOrder(json({ commands: ['exit\n', 'ls\n'] })),
      terminal: { isAlive: () => Promise.resolve(isAlive), send },
    });
    assert.equal(run.error, null);
    assert.equal(shown(stepsOf(run)[1]), terminalEnded);
  });

  test('fails when its sandbox has gone, with the turn on record', async () => {
    const lost = new RolloutError('ENVIRONMENT_LOST', 'gone', { phase: 'agent' });
    let isAlive = true;
    const run = await runLoop({
      script: inOrder(json({ commands: ['ls\n'] })),
      exec: () => Promise.reject(lost),
      terminal: {
        isAlive: () => Promise.resolve(isAlive),
        send: () => {
          isAlive = false;
          return Promise.reject(lost);
        },
      },
    });
    assert.equal(run.error, lost);
    assert.equal(stepsOf(run).length, 2);
    assert.deepEqual(
      stepsOf(run)[1]?.metrics?.completion_token_ids,
      run.engine.calls[0]?.result?.outputIds,
    );
  });

  test('leaves a whole trajectory and its numbers when it is stopped in a call or in a command', async () => {
    const reason = new RolloutError('AGENT_TIMEOUT', 'too long', { phase: 'agent' });
    const controller = new AbortController();
    const inCall = await runLoop({
      script: (_, call) => {
        if (call === 0) return json({ commands: ['ls\n'] });
        setImmediate(() => controller.abort(reason));
        return silence;
      },
      signal: controller.signal,
    });
    assert.equal(inCall.error, reason);
    assert.equal(stepsOf(inCall).length, 2);
    assert.equal(inCall.result?.n_input_tokens, 3);
    const second = new AbortController();
    const inCommand = await runLoop({
      script: inOrder(json({ commands: ['sleep 100\n'] })),
      signal: second.signal,
      terminal: {
        send: () => {
          second.abort(reason);
          return Promise.reject(reason);
        },
      },
    });
    assert.equal(inCommand.error, reason);
    assert.equal(stepsOf(inCommand)[1]?.tool_calls?.length, 1);
  });

  test('fails with what the engine failed with, after its retries', async () => {
    const run = await runLoop({
      script: (_, call) =>
        call === 0
          ? json({ commands: ['ls\n'] })
          : new RolloutError('ENGINE_UNAVAILABLE', 'down', { phase: 'model-call' }),
    });
    assert.ok(isRolloutError(run.error, 'ENGINE_UNAVAILABLE'));
    assert.equal(run.engine.calls.length, 10);
    assert.equal(stepsOf(run).length, 2);
    assert.equal(run.main?.final_metrics?.total_prompt_tokens, 3);
  });

  test('sends reasoning back only when thinking is interleaved, and keeps all messages when asked', async () => {
    for (const isInterleaved of [false, true]) {
      const run = await runLoop({
        script: inOrder({ text: json({}), reasoning: 'because' }, done, done),
        kwargs: { interleaved_thinking: isInterleaved, store_all_messages: true },
      });
      const input = run.engine.calls[1]!.request.input;
      assert.ok(input.kind === 'messages');
      assert.equal(input.messages[1]?.reasoning_content, isInterleaved ? 'because' : undefined);
      const stored = run.result?.metadata?.['all_messages'] as unknown[];
      assert.equal(stored.length, 6);
    }
  });

  test('survives a reply of five megabytes', async () => {
    const run = await runLoop({
      script: inOrder('x'.repeat(5_000_000), done, done),
      kwargs: { proactive_summarization_threshold: 0 },
    });
    assert.equal(run.error, null);
    assert.equal(run.engine.calls.length, 3);
  });

  test('writes no known secret, and no ids of what holds one', async () => {
    const secret = 'sk-very-secret-value';
    const run = await runLoop({
      script: inOrder(json({ commands: [`echo ${secret}\n`] }), done, done),
      secrets: [secret],
    });
    assert.deepEqual(run.typed[0], [`echo ${secret}\n`, 0.1]);
    assert.ok(!JSON.stringify(run.documents).includes(secret));
    assert.equal(stepsOf(run)[1]?.metrics?.completion_token_ids, undefined);
    assert.deepEqual(stepsOf(run)[1]?.extra?.['slipway'], {
      trainable: false,
      reason: 'secret-redacted',
    });
  });

  test('gives away no ids of a reply whose secret no field of its step shows', async () => {
    const secret = 'sk-very-secret-value';
    const hidden = JSON.stringify({ analysis: 'a', plan: 'p', commands: [], note: secret });
    const run = await runLoop({ script: inOrder(hidden, done, done), secrets: [secret] });
    const [, turn, next] = stepsOf(run);
    assert.equal(turn?.metrics?.completion_token_ids, undefined);
    assert.ok(Array.isArray(turn?.metrics?.prompt_token_ids));
    // It is part of every later prompt.
    assert.equal(next?.metrics?.prompt_token_ids, undefined);
  });
});
