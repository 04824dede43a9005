import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { stepsOfChat } from '../../src/archive/chat-steps.ts';
import { withReport } from '../../src/archive/controller-report.ts';
import { rolloutDocuments, type RolloutFacts } from '../../src/archive/rollout-documents.ts';
import { wantsCalls } from '../../src/archive/rollout-trajectory.ts';
import { validateTrajectory } from '../../src/trajectory/validate.ts';
import type { AtifStep, AtifTrajectory } from '../../src/wire/atif/atif.ts';
import type { Sample } from '../../src/wire/rollout/callback-payloads.ts';

const outcome: RolloutFacts['outcome'] = {
  ...{ status: 'success', reward: 1, errMessage: null, errCategory: null },
  ...{ stage: 'done', cause: null, trainable: true, retryable: false, verdict: null },
};
const sample: Sample = {
  messages: [],
  trajectoryMessages: [
    { role: 'user', content: 'hi' },
    { role: 'assistant', content: 'ho' },
  ],
  ...{ label: null, reward: 1, isRemoved: false, metrics: { turns: 1 }, extraFields: {} },
};
const factsOf = (
  result: Partial<RolloutFacts['result']> = {},
  over: Partial<RolloutFacts> = {},
): RolloutFacts => ({
  rolloutId: 'r1',
  label: 'from the request',
  metadata: { row: 1 },
  extraFields: null,
  outcome,
  result: { status: 'success', sample: null, diagnostics: null, trajectory: null, ...result },
  report: null,
  version: '1.0.0',
  ...over,
});
const trajectoryOf = (facts: RolloutFacts) =>
  rolloutDocuments(facts).documents['trajectory.json'] as AtifTrajectory;

describe('the documents of a rollout', () => {
  it('are the outcome alone when there is nothing else to say', () => {
    assert.deepEqual(rolloutDocuments(factsOf()), {
      documents: { 'outcome.json': outcome },
      warnings: [],
    });
  });

  it('hold the diagnostics also where there is no conversation', () => {
    const { documents } = rolloutDocuments(factsOf({ diagnostics: { phase: 'agent' } }));
    assert.deepEqual(Object.keys(documents), ['outcome.json', 'diagnostics.json']);
  });

  it('have the token ids of captured calls where the agent’s own document has none', () => {
    const metrics = { completion_token_ids: [5], logprobs: [-1] };
    const answer = { source: 'agent', message: 'ho', metrics } as const;
    const calls = [{ answerId: 'a', answer, sampledText: 'ho' }];
    const steps = [
      { step_id: 1, source: 'user', message: 'hi' },
      { step_id: 2, source: 'agent', message: 'ho' },
    ];
    const document = { schema_version: 'ATIF-v1.7', agent: { name: 'x', version: '1' }, steps };
    const facts = factsOf({ trajectory: document });
    const { documents } = rolloutDocuments(facts, calls);
    const joined = documents['trajectory.json'] as AtifTrajectory;
    assert.deepEqual(validateTrajectory(joined), []);
    assert.deepEqual(joined.steps[1]?.metrics?.completion_token_ids, [5]);
    assert.deepEqual([wantsCalls(facts), wantsCalls(factsOf({ sample }))], [true, false]);
    assert.equal(wantsCalls(factsOf({ trajectory: { ...document, steps: joined.steps } })), false);
  });

  it('hold a trajectory of the sample’s messages, with what is known of the rollout', () => {
    const trajectory = trajectoryOf(factsOf({ sample, diagnostics: { backend: 'local' } }));
    assert.deepEqual(validateTrajectory(trajectory), []);
    assert.equal(trajectory.session_id, 'r1');
    assert.equal(trajectory.final_metrics?.total_steps, 2);
    assert.deepEqual(trajectory.extra, {
      osmosis: {
        rollout_id: 'r1',
        label: 'from the request',
        reward: 1,
        sample_metrics: { turns: 1 },
        request_metadata: { row: 1 },
        result_extra_fields: { backend: 'local' },
      },
    });
  });

  it('hold none where the sample opted out or has no message', () => {
    for (const trajectoryMessages of [null, []])
      assert.equal(trajectoryOf(factsOf({ sample: { ...sample, trajectoryMessages } })), undefined);
  });

  it('hold the agent’s own trajectory as it is, under the id of the rollout', () => {
    const native = {
      schema_version: 'ATIF-v1.5',
      session_id: 'own-session',
      trajectory_id: 'r1',
      agent: { name: 'terminus-2', version: '2', tool_definitions: [{ name: 't' }] },
      steps: [{ step_id: 1, source: 'user', message: 'hi', is_copied_context: true }],
      final_metrics: { total_prompt_tokens: 7 },
      extra: { mine: 1, osmosis: { before: true, reward: 9 } },
    };
    const trajectory = trajectoryOf(factsOf({ sample, trajectory: native }));
    assert.deepEqual(trajectory.steps, native.steps);
    assert.deepEqual(trajectory.agent, native.agent);
    assert.deepEqual(trajectory.final_metrics, { total_prompt_tokens: 7, total_steps: 1 });
    const { osmosis, mine } = trajectory.extra as { osmosis: object; mine: number };
    assert.equal(mine, 1);
    assert.deepEqual(osmosis, {
      ...{ before: true, rollout_id: 'r1', label: 'from the request', reward: 1 },
      ...{ sample_metrics: { turns: 1 }, request_metadata: { row: 1 } },
      native_session_id: 'own-session',
    });
  });

  it('name what is wrong with a trajectory that is none, and hold the others', () => {
    const trajectory = { agent: { name: 'a', version: '1' }, steps: [] };
    const { documents, warnings } = rolloutDocuments(factsOf({ trajectory }));
    assert.deepEqual(Object.keys(documents), ['outcome.json']);
    assert.match(warnings.join(), /steps/);
  });
});

describe('a conversation as steps', () => {
  const call = (id: string) => ({
    id,
    type: 'function',
    function: { name: 'f', arguments: '{"a":1}' },
  });
  const rows: readonly (readonly [
    string,
    readonly Record<string, unknown>[],
    readonly Partial<AtifStep>[],
  ])[] = [
    [
      'a developer speaks for the system',
      [{ role: 'developer', content: 'x' }],
      [{ source: 'system', message: 'x' }],
    ],
    [
      'an unknown role is kept',
      [{ role: 'critic', content: 'x' }],
      [{ source: 'user', extra: { original_role: 'critic' } }],
    ],
    [
      'answers of tools belong to the agent’s step before them',
      [
        { role: 'assistant', content: null, tool_calls: [call('c1'), call('c2')] },
        { role: 'tool', tool_call_id: 'c1', content: 'one' },
        { role: 'tool', tool_call_id: 'c9', content: 'two' },
      ],
      [
        {
          source: 'agent',
          message: '',
          tool_calls: [
            { tool_call_id: 'c1', function_name: 'f', arguments: { a: 1 } },
            { tool_call_id: 'c2', function_name: 'f', arguments: { a: 1 } },
          ],
          observation: {
            results: [
              { source_call_id: 'c1', content: 'one' },
              { content: 'two', extra: { tool_call_id: 'c9' } },
            ],
          },
        },
      ],
    ],
    [
      'an answer without a step is one of the system',
      [
        { role: 'user', content: 'x' },
        { role: 'tool', tool_call_id: 'c', content: 'y' },
      ],
      [
        { source: 'user' },
        {
          source: 'system',
          message: '',
          extra: { original_role: 'tool' },
          observation: { results: [{ content: 'y', extra: { tool_call_id: 'c' } }] },
        },
      ],
    ],
    [
      'tool calls of another role, and reasoning, stand in extra',
      [{ role: 'user', content: 'x', tool_calls: 'odd', reasoning: { a: 1 } }],
      [{ extra: { reasoning_content: '{"a":1}', tool_calls: 'odd' } }],
    ],
    [
      'arguments that are no object stay as they are',
      [
        {
          role: 'assistant',
          content: '',
          tool_calls: [
            { function: { arguments: 'not json' } },
            { function: { name: 'g', arguments: { b: 2 } } },
            'odd',
          ],
        },
      ],
      [
        {
          tool_calls: [
            { tool_call_id: 'call_0', function_name: 'unknown', arguments: { _raw: 'not json' } },
            { tool_call_id: 'call_1', function_name: 'g', arguments: { b: 2 } },
          ],
        },
      ],
    ],
    [
      'texts of parts are joined, other parts stay JSON',
      [
        {
          role: 'user',
          content: [
            { type: 'text', text: 'a' },
            { type: 'text', text: 'b' },
          ],
        },
        { role: 'user', content: [{ type: 'image_url', image_url: 'é' }] },
      ],
      [{ message: 'a\nb' }, { message: '[{"type":"image_url","image_url":"é"}]' }],
    ],
    [
      'usage counts, a zero too, in either spelling',
      [
        {
          role: 'assistant',
          content: 'x',
          model: 'm',
          usage: { prompt_tokens: 0, input_tokens: 9, completion_tokens: 2 },
        },
        {
          role: 'assistant',
          content: 'x',
          extra: { response: { usage: { input_tokens: 3, output_tokens: 'x' } } },
        },
        { role: 'assistant', content: 'x', usage: 'odd' },
      ],
      [
        { model_name: 'm', metrics: { prompt_tokens: 0, completion_tokens: 2 }, llm_call_count: 1 },
        { metrics: { prompt_tokens: 3 }, llm_call_count: 1 },
        { source: 'agent' },
      ],
    ],
    [
      'the first that is a time is the time',
      [{ role: 'user', content: '', created_at: true, timestamp: 'soon', completed_at: 0 }],
      [{ timestamp: '1970-01-01T00:00:00.000Z' }],
    ],
  ];
  for (const [title, messages, expected] of rows)
    it(`is made so that ${title}`, () => {
      const steps = stepsOfChat(messages);
      assert.equal(steps.length, expected.length);
      for (const [index, fields] of expected.entries())
        for (const [key, value] of Object.entries(fields))
          assert.deepEqual(steps[index]?.[key as keyof AtifStep], value, `${index}.${key}`);
      const agent = { name: 'a', version: '1' };
      assert.deepEqual(validateTrajectory({ schema_version: 'ATIF-v1.7', agent, steps }), []);
    });
});

describe('the report of a controller', () => {
  const document: AtifTrajectory = {
    agent: { name: 'a', version: '1' },
    steps: [
      { step_id: 1, source: 'user', message: 'x' },
      {
        step_id: 2,
        source: 'agent',
        message: 'y',
        metrics: { prompt_tokens: 1, completion_token_ids: [5] },
      },
    ],
  };
  const reporting = (entry: unknown) => withReport(document, { samples: { any: entry } });

  it('is laid over the steps field by field, and erases no token ids', () => {
    const call = { prompt_tokens: 3, completion_tokens: 4, model_name: 'm' };
    const { trajectory, unmatched } = reporting({ llm_call_metrics: [call], model_name: 'best' });
    assert.deepEqual(trajectory.steps[1]?.metrics, {
      prompt_tokens: 3,
      completion_tokens: 4,
      completion_token_ids: [5],
    });
    assert.deepEqual([trajectory.steps[1].model_name, trajectory.agent.model_name], ['m', 'best']);
    assert.deepEqual(trajectory.final_metrics, {
      total_prompt_tokens: 3,
      total_completion_tokens: 4,
      total_steps: 2,
    });
    assert.deepEqual(unmatched, {});
  });

  it('with another number of calls is kept whole beside the steps, and its totals count', () => {
    const calls = [{ prompt_tokens: 1 }, { prompt_tokens: 2 }];
    const final_metrics = { total_prompt_tokens: 99, total_steps: 7 };
    const { trajectory, unmatched } = reporting({ llm_call_metrics: calls, final_metrics });
    assert.deepEqual(trajectory.steps, document.steps);
    assert.deepEqual(trajectory.final_metrics, { total_prompt_tokens: 99, total_steps: 2 });
    assert.deepEqual(unmatched, { unmatched_llm_call_metrics: calls });
  });

  it('on several samples is attributed to none', () => {
    const samples = { a: { llm_call_metrics: [] }, b: { llm_call_metrics: [] } };
    const { unmatched, warnings } = withReport(document, { samples });
    assert.deepEqual(unmatched, { unmatched_sample_reports: samples });
    assert.equal(warnings.length, 1);
  });

  it('whose totals are none falls back to sums, with a warning', () => {
    const { trajectory, warnings } = reporting({
      llm_call_metrics: [{ cost_usd: 0.5 }],
      final_metrics: { total_prompt_tokens: 'many' },
    });
    assert.deepEqual(trajectory.final_metrics, { total_cost_usd: 0.5, total_steps: 2 });
    assert.equal(warnings.length, 1);
  });

  for (const report of ['text', 3, { samples: [] }, { samples: { a: { llm_call_metrics: 'x' } } }])
    it(`that is ${JSON.stringify(report)} changes nothing but is told`, () => {
      const { trajectory, warnings } = withReport(document, report);
      assert.deepEqual(trajectory.steps, document.steps);
      assert.equal(warnings.length, 1);
    });
});
