import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { summarize } from '../../src/jobs/trial-summary.ts';
import { trialResultSchema } from '../../src/wire/harbor/trial-result.ts';

const withIds = [{ prompt_token_ids: [[1]], completion_token_ids: [[2]], logprobs: [[-1]] }];
const said = { n_input_tokens: 1, n_output_tokens: 1 };

type Kwargs = Readonly<Record<string, unknown>>;

const lacksTokenIds = (kwargs: Kwargs, parts: object): boolean =>
  summarize(
    trialResultSchema.parse({
      id: 'i',
      task_name: 't',
      trial_name: 't__1',
      trial_uri: 'file:///t',
      task_id: { path: 't' },
      task_checksum: 'c',
      config: { task: { path: 't' }, agent: { name: 'terminus-2', kwargs } },
      agent_info: { name: 'terminus-2' },
      ...parts,
    }),
  ).lacksTokenIds;

describe('a trial lacks token ids', () => {
  const asked = { collect_rollout_details: true };
  const rows: readonly (readonly [title: string, kwargs: Kwargs, parts: object, lacks: boolean])[] =
    [
      ['when it was asked for them and has none', asked, { ...said, rollout_details: [] }, true],
      [
        'when it has other details only',
        asked,
        { ...said, rollout_details: [{ extra: {} }] },
        true,
      ],
      [
        'when it was asked by a word',
        { collect_rollout_details: 'True' },
        { ...said, rollout_details: null },
        true,
      ],
      ['but not with ids', asked, { ...said, rollout_details: withIds }, false],
      ['but not when nobody asked', {}, { ...said, rollout_details: [] }, false],
      ['but not when no model replied', asked, { n_output_tokens: 0, rollout_details: [] }, false],
    ];
  for (const [title, kwargs, agent_result, expected] of rows)
    test(title, () => assert.equal(lacksTokenIds(kwargs, { agent_result }), expected));

  test('but not when one of its steps has them', () => {
    const step = (rollout_details: unknown) => ({
      step_name: 's',
      agent_result: { ...said, rollout_details },
    });
    assert.equal(lacksTokenIds(asked, { step_results: [step([]), step(withIds)] }), false);
    assert.equal(lacksTokenIds(asked, { step_results: [step([]), step([])] }), true);
  });
});
