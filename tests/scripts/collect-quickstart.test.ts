import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  groupTable,
  problemsOf,
  readCollected,
  type Collected,
} from '../../scripts/quickstart/collect-outcome.js';
import type { CollectedBatchLine, CollectedGroupLine } from '../../src/wire/api/collected-lines.ts';

const sample = {
  ...{ tokens: [1, 2, 3], prompt_length: 1, loss_mask: [1, 0] as const, log_probs: [-0.5, 0] },
  ...{ weight: 1, is_truncated: false, spans: [] },
};
const member = (id: string): CollectedGroupLine['members'][number] => ({
  ...{ rollout_id: id, member: 0, status: 'completed', cause: null, reward: 1, attempts: 1 },
  ...{ is_masked: false, is_removed: false, duration_ms: 1500, samples: [sample] },
});
const group = (index: number): CollectedGroupLine => ({
  ...{ type: 'group', batch: 0, group: index, row: 0, epoch: 0, prompt: [], label: 'sum' },
  ...{ metadata: {}, oldest_version: null, members: [member(`${index}a`), member(`${index}b`)] },
});
const batch: CollectedBatchLine = {
  ...{ type: 'batch', batch: 0, groups: 2, started: { groups: 3, rollouts: 6 }, refilled: 0 },
  ...{ losses: {}, dropped: {}, returned: 0, collect_ms: 10, mean_reward: 1 },
  abort: {
    ...{ rollouts: 2, by: { ended: 2 }, engines: 1, hook: 'called', duration_ms: 9 },
    ...{ is_complete: true, problems: [] },
  },
};
const expected = { rewards: { sum: 1 }, batches: 1, groups: 2, members: 2 };
const right: Collected = { groups: [group(0), group(1)], batches: [batch] };

test('two groups with the script’s rewards and trained tokens are as expected', () => {
  const text = [...right.groups, batch].map((line) => `${JSON.stringify(line)}\n`).join('');
  assert.deepEqual(readCollected(text), right);
  assert.deepEqual(problemsOf(right, expected), []);
  assert.match(groupTable(right.groups), /^1 +0 +sum +1 {2}1 +2 +2 +1\.5 s$/m);
});

const without = (change: Partial<CollectedGroupLine['members'][number]>): Collected => ({
  ...right,
  groups: [group(0), { ...group(1), members: [member('1a'), { ...member('1b'), ...change }] }],
});
for (const [what, collected, problem] of [
  ['a wrong reward', without({ reward: 0 }), '1b: reward 0 for 1'],
  ['a member without tokens to train', without({ samples: [] }), '1b: no token to train'],
  ['a group that is missing', { ...right, groups: [group(0)] }, '1 groups for 2'],
  ['a group that came twice', { ...right, groups: [group(0), group(0)] }, 'a group came twice'],
  [
    'an abort that left something',
    {
      ...right,
      batches: [{ ...batch, abort: { ...batch.abort, is_complete: false } }],
    } as Collected,
    'batch 0: not all is gone',
  ],
] as const)
  test(`${what} is found`, () => {
    assert.deepEqual(problemsOf(collected, expected), [problem]);
  });
