import assert from 'node:assert/strict';
import { it } from 'node:test';
import type { CollectedGroup } from '../../../src/collector/group.ts';
import type { CollectorHooks } from '../../../src/collector/hooks.ts';
import type { CollectedMember } from '../../../src/collector/member.ts';
import { finishGroup } from '../../../src/collector/pool/finish-group.ts';
import { never } from '../../../src/core/linked-abort.ts';
import { success } from '../scripted-rollouts.ts';

const row = { rowIndex: 0, epoch: 0, messages: [], label: null, metadata: {} };
const member = (memberIndex: number, isMasked = false): CollectedMember => ({
  request: {
    ...{ rolloutId: `m${memberIndex}`, groupIndex: 0, memberIndex, index: memberIndex, attempt: 1 },
    ...{ row, weightVersion: null, seed: null, resume: [] },
  },
  ...{ end: { ...success, reward: null }, reward: null, isMasked, isRemoved: false },
  ...{ attempts: 1, durationMs: 1 },
});
const group: CollectedGroup = {
  seed: { ...{ groupIndex: 0, row, firstIndex: 0, remains: [], rounds: 0 } },
  ...{ members: [member(0), member(1), member(2, true)], durationMs: 1, oldestVersion: null },
};

/** As a module in JavaScript may give it. */
const untyped = (value: unknown): never => value as never;

const wrong: readonly (readonly [string, CollectorHooks, RegExp])[] = [
  ['no reward of a member', { memberReward: () => untyped(undefined) }, /member 0 is no finite/],
  ['a text as reward', { memberReward: () => untyped('1') }, /member 0 is no finite number/],
  [
    'no number among rewards',
    { groupReward: () => untyped([1, null, 1]) },
    /member 1 is no finite/,
  ],
  ['too few rewards', { groupReward: () => [1] }, /one value for each of 3 members/],
  ['no verdict', { groupFilter: () => untyped(undefined) }, /groupFilter has to give/],
  ['a verdict that is a word', { groupFilter: () => untyped(false) }, /groupFilter has to give/],
  ['too few removals', { sampleFilter: () => [true] }, /one value for each of 3 members/],
];
for (const [title, hooks, told] of wrong)
  it(`a hook that gives ${title} costs its group and says why`, async () => {
    const finished = await finishGroup(group, { hooks, hookMs: 10_000 }, never);
    assert.equal(finished.kind, 'dropped');
    assert.equal(finished.reason, 'hook-failed');
    assert.match(finished.detail ?? '', told);
  });

it('a masked member is asked about by nobody, and has no reward whatever its group gets', async () => {
  for (const hooks of [
    { memberReward: () => 0.5 },
    { groupReward: () => [0.5, 0.5, untyped(null)] },
  ]) {
    const finished = await finishGroup(group, { hooks, hookMs: 10_000 }, never);
    assert.equal(finished.kind, 'kept');
    assert.deepEqual(
      finished.group.members.map(({ reward }) => reward),
      [0.5, 0.5, null],
    );
  }
});
