/** The small form of `npm run chaos`: its judge. Its parts run at small size in the tests beside it. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { CollectedGroupLine } from '../../../src/wire/api/collected-lines.ts';
import { judgeStorm, type StormEvidence } from './judge-storm.ts';
import { tamperedStorms } from './tampered-storm.ts';

const call = { prompt_ids: [1, 2], output_ids: [3, 4], logprobs: [-0.5, -0.25] };
function groupOf(group: number): CollectedGroupLine {
  const sample = {
    ...{
      tokens: [1, 2, 3, 4],
      prompt_length: 2,
      loss_mask: [1, 1] as const,
      log_probs: call.logprobs,
    },
    ...{ weight: 1, is_truncated: false, spans: [] },
  };
  const member = {
    ...{ rollout_id: `r-${group}`, member: 0, status: 'completed', cause: null, reward: 0.5 },
    ...{ is_masked: false, is_removed: false, attempts: 1, duration_ms: 1, samples: [sample] },
  } as const;
  return {
    ...{ type: 'group', batch: 0, group, row: group, epoch: 0, prompt: [], label: null },
    ...{ metadata: {}, oldest_version: null, members: [member] },
  };
}
const sound: StormEvidence = {
  ...{ groups: [0, 1, 2].map(groupOf), groupSize: 1, mostRepeated: 0, left: [] },
  sampled: [
    { ...call, request_id: 'x', text: '', canonical: true, finish_reason: 'stop', fault: null },
  ],
};

describe('the judge of a storm', () => {
  it('finds nothing wrong where nothing is', () => {
    assert.deepEqual(judgeStorm(sound), { lost: [], leaked: [], inexact: [] });
  });
  it('allows a batch that came again after a death', () => {
    const again = { ...sound, groups: [...sound.groups, groupOf(2)], mostRepeated: 1 };
    assert.deepEqual(judgeStorm(again).lost, []);
  });
  for (const { what, evidence, breaks } of tamperedStorms(sound))
    it(`finds ${what}`, () => {
      assert.notDeepEqual(judgeStorm(evidence)[breaks], []);
    });
});
