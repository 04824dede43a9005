import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { never } from '../../../src/core/linked-abort.ts';
import { SynchronousDriver } from '../../../src/collector/drivers/synchronous-driver.ts';
import type { MemberRequest } from '../../../src/collector/member.ts';
import { rewardSpread } from '../../../src/collector/filters/reward-spread.ts';
import {
  aborted,
  lost,
  rows,
  scene,
  ScriptedRollouts,
  settle,
  success,
} from '../scripted-rollouts.ts';
import { collectorBegin, GroupSource } from '../../../src/collector/group-source.ts';

const group =
  (...indexes: readonly number[]) =>
  ({ groupIndex }: MemberRequest): boolean =>
    indexes.includes(groupIndex);
const quick = { abort: { drainMs: 20, settleMs: 20 } };

describe('the synchronous driver', () => {
  it('hands over the first complete groups in the order in which they were drawn, and ends the rest', async () => {
    const rollouts = new ScriptedRollouts();
    const parts = scene({ groupSize: 2, batchGroups: 2, startGroups: 4, ...quick }, { rollouts });
    const driver = new SynchronousDriver(parts, 'run');
    const collecting = driver.collect(never);
    await settle();
    assert.equal(rollouts.running.size, 8);
    await rollouts.end(success, group(3));
    await rollouts.end(success, group(1));
    const batch = await collecting;
    assert.deepEqual(
      batch?.groups.map(({ seed }) => seed.groupIndex),
      [1, 3],
    );
    const receipt = await batch.quiet;
    assert.deepEqual(
      receipt?.rollouts.map(({ rolloutId, how }) => [rolloutId, how]),
      [
        ['run-g0-m0-a1', 'ended'],
        ['run-g0-m1-a1', 'ended'],
        ['run-g2-m0-a1', 'ended'],
        ['run-g2-m1-a1', 'ended'],
      ],
    );
    assert.equal(receipt.isComplete, true);
    assert.deepEqual(batch.report().drops, { aborted: 2 });
  });

  it('makes a lost member anew alone, without its siblings', async () => {
    const rollouts = new ScriptedRollouts(({ memberIndex, attempt }) =>
      memberIndex === 1 && attempt === 1 ? lost : success,
    );
    const parts = scene({ groupSize: 3, batchGroups: 2 }, { rollouts });
    const batch = await new SynchronousDriver(parts, 'run').collect(never);
    assert.equal(rollouts.requests.length, 8);
    const report = batch?.report();
    assert.equal(report?.rolloutsRefilled, 2);
    assert.deepEqual(report.losses, { ENVIRONMENT_LOST: 2 });
    assert.deepEqual(
      batch?.groups[0]?.members.map(({ attempts }) => attempts),
      [1, 2, 1],
    );
  });

  const endings = [
    {
      title:
        'a row that is wrong is given up at once, with its reason, and its siblings are stopped',
      end: { ...lost, fault: 'task', cause: 'TASK_NOT_FOUND', isRetryable: false } as const,
      drops: { 'given-up/TASK_NOT_FOUND': 1 },
      givenUpRows: [0],
    },
    {
      title: 'a row whose attempts are all lost counts as lost, and may be drawn again',
      end: lost,
      drops: { 'lost/4 attempts: ENVIRONMENT_LOST': 1 },
      givenUpRows: [],
    },
  ];
  for (const { title, end, drops, givenUpRows } of endings)
    it(title, async () => {
      const rollouts = new ScriptedRollouts(({ row, memberIndex }) =>
        row.rowIndex > 0 ? success : memberIndex === 0 ? end : null,
      );
      const parts = scene({ groupSize: 2, batchGroups: 1, topUp: 'needed' }, { rollouts });
      const batch = await new SynchronousDriver(parts, 'run').collect(never);
      assert.deepEqual(
        batch?.groups.map(({ seed }) => seed.row.rowIndex),
        [1],
      );
      assert.deepEqual(batch.report().drops, drops);
      assert.deepEqual(parts.source.position.givenUpRows, givenUpRows);
      assert.equal(rollouts.running.size, 0);
    });

  it('rejects when group after group comes to nothing', async () => {
    const rollouts = new ScriptedRollouts(() => lost);
    const parts = scene(
      { groupSize: 1, batchGroups: 1, maxAttempts: 1, maxLostGroups: 5 },
      { rollouts },
    );
    await assert.rejects(new SynchronousDriver(parts, 'run').collect(never), {
      code: 'COLLECTION_STALLED',
    });
    assert.equal(rollouts.requests.length, 5);
  });

  for (const { title, options, passing, requests } of [
    {
      title: 'starts no second round when the one group that passes is enough',
      options: { batchGroups: 1, startGroups: 4 },
      passing: 4,
      requests: 4,
    },
    {
      title: 'starts the whole amount once more where it is told to',
      options: { batchGroups: 2, startGroups: 4, topUp: 'whole' } as const,
      passing: 4,
      requests: 8,
    },
    {
      title: 'starts only what is missing, times the oversampling',
      options: { batchGroups: 2, startGroups: 4 },
      passing: 3,
      requests: 6,
    },
  ])
    it(title, async () => {
      const rollouts = new ScriptedRollouts(() => success);
      let ended = 0;
      const groupFilter = (): { keep: boolean; reason: string } => {
        ended += 1;
        return { keep: ended % passing === 0, reason: 'no' };
      };
      const parts = scene({ groupSize: 1, ...options }, { rollouts, hooks: { groupFilter } });
      const batch = await new SynchronousDriver(parts, 'run').collect(never);
      assert.equal(batch?.groups.length, options.batchGroups);
      assert.equal(rollouts.requests.length, requests);
    });

  it('starts a group for members that ended, before any group has, where samples are counted', async () => {
    const rollouts = new ScriptedRollouts();
    const options = { groupSize: 4, batchGroups: 2, granularity: 'sample' } as const;
    const parts = scene({ ...options, ...quick }, { rollouts });
    const driver = new SynchronousDriver(parts, 'run');
    const collecting = driver.collect(never);
    await settle();
    await rollouts.end(
      success,
      ({ groupIndex, memberIndex }) => groupIndex === 0 && memberIndex < 3,
    );
    assert.equal(rollouts.requests.length, 8);
    await rollouts.end(
      success,
      ({ groupIndex, memberIndex }) => groupIndex === 1 && memberIndex < 1,
    );
    assert.equal(rollouts.requests.length, 12);
    await rollouts.end(success, group(0, 1));
    await (
      await collecting
    )?.quiet;
  });

  for (const { surplus, returned, second } of [
    { surplus: 'keep', returned: [[1, 'complete']], second: [1] },
    { surplus: 'return', returned: [[1, 'new']], second: [1] },
    { surplus: 'discard', returned: [], second: [3] },
  ] as const)
    it(`a group that finishes beyond the batch is accounted for: ${surplus}`, async () => {
      const rollouts = new ScriptedRollouts();
      const parts = scene(
        { groupSize: 1, batchGroups: 1, startGroups: 3, surplus, ...quick },
        { rollouts },
      );
      const driver = new SynchronousDriver(parts, 'run');
      const collecting = driver.collect(never);
      await settle();
      await rollouts.end(success, group(0, 1));
      const batch = await collecting;
      await batch?.quiet;
      const report = batch?.report();
      assert.deepEqual(
        report?.returned.map(({ seed, as }) => [seed.groupIndex, as]),
        returned,
      );
      assert.deepEqual(
        report.drops,
        surplus === 'discard' ? { surplus: 1, aborted: 1 } : { aborted: 1 },
      );
      const open = parts.source.position.open.map(({ groupIndex }) => groupIndex);
      assert.deepEqual(open, surplus === 'discard' ? [] : [1]);
      const next = driver.collect(never);
      await settle();
      await rollouts.end(success, group(...second));
      assert.deepEqual(
        (await next)?.groups.map(({ seed }) => seed.groupIndex),
        second,
      );
      await driver.stop('stopped');
    });

  const sampled = {
    ...{ tokens: [1, 2, 3], promptLength: 1, lossMask: [1, 1] as const, logprobs: [-1, -1] },
    ...{ weight: 1, isTruncated: false },
    spans: [{ begin: 1, end: 3, isTrained: true, weightVersion: '1' }],
  };
  for (const { unfinished, masks } of [
    { unfinished: 'resume', masks: [[1, 1]] },
    { unfinished: 'resume-masked', masks: [[0, 0]] },
  ] as const)
    it(`what was cut off goes on where it was: ${unfinished}`, async () => {
      const rollouts = new ScriptedRollouts();
      const parts = scene(
        { groupSize: 2, batchGroups: 1, startGroups: 2, unfinished, abort: { drainMs: 5_000 } },
        { rollouts },
      );
      const driver = new SynchronousDriver(parts, 'run');
      const collecting = driver.collect(never);
      await settle();
      await rollouts.end({ ...success, samples: [sampled] }, ({ groupIndex, memberIndex }) =>
        groupIndex === 1 ? memberIndex === 0 : false,
      );
      await rollouts.end(success, group(0));
      const batch = await collecting;
      await settle();
      await rollouts.end({ ...aborted, samples: [sampled] });
      await batch?.quiet;
      const next = driver.collect(never);
      await settle();
      const again = rollouts.requests.filter(({ rolloutId }) => rolloutId.startsWith('run-g1r1-'));
      assert.deepEqual(
        again.map(({ memberIndex, resume }) => [
          memberIndex,
          resume.map(({ lossMask }) => lossMask),
        ]),
        [[1, masks]],
      );
      await rollouts.end(success, group(1));
      const [resumed] = (await next)?.groups ?? [];
      assert.deepEqual(resumed?.members[0]?.end.samples[0]?.lossMask, masks[0]);
      await rollouts.end(aborted);
    });

  it('drops the group whose filter throws, and no other', async () => {
    const rollouts = new ScriptedRollouts(({ groupIndex, memberIndex }) => ({
      ...success,
      reward: groupIndex === 0 ? null : groupIndex === 3 ? memberIndex : groupIndex,
    }));
    const source = new GroupSource(rows(4), { ...sourceOptions, epochs: 1 });
    const hooks = { groupFilter: rewardSpread };
    const parts = scene({ groupSize: 2, batchGroups: 2 }, { rollouts, hooks, source });
    const batch = await new SynchronousDriver(parts, 'run').collect(never);
    assert.deepEqual(
      batch?.groups.map(({ seed }) => seed.groupIndex),
      [3],
    );
    assert.deepEqual(batch.report().drops, {
      'hook-failed/run-g0-m0-a1 has no reward': 1,
      'filtered/zero_std_1.0': 1,
      'filtered/zero_std_2.0': 1,
    });
  });

  it('gives a group to one call of the group reward, and keeps its numbers', async () => {
    const rollouts = new ScriptedRollouts(() => ({ ...success, reward: null }));
    let calls = 0;
    const groupReward = (): readonly number[] => {
      calls += 1;
      return [0.25, 0.75];
    };
    const parts = scene({ groupSize: 2, batchGroups: 2 }, { rollouts, hooks: { groupReward } });
    const batch = await new SynchronousDriver(parts, 'run').collect(never);
    assert.equal(calls, 2);
    assert.deepEqual(
      batch?.groups.map(({ members }) => members.map(({ reward }) => reward)),
      [
        [0.25, 0.75],
        [0.25, 0.75],
      ],
    );
  });

  it('ends what runs when its caller gives up, and goes on with the next call', async () => {
    const rollouts = new ScriptedRollouts();
    const parts = scene({ groupSize: 1, batchGroups: 1, ...quick }, { rollouts });
    const driver = new SynchronousDriver(parts, 'run');
    const caller = new AbortController();
    const collecting = driver.collect(caller.signal);
    await settle();
    caller.abort(new Error('enough'));
    await assert.rejects(collecting, /enough/);
    assert.equal(rollouts.running.size, 0);
    const next = driver.collect(never);
    await settle();
    await rollouts.end(success);
    assert.equal((await next)?.groups.length, 1);
  });

  it('abandons a rollout that hears nothing, and says so', async () => {
    const rollouts = new ScriptedRollouts();
    rollouts.isDeaf = true;
    const parts = scene({ groupSize: 1, batchGroups: 1, startGroups: 2, ...quick }, { rollouts });
    const collecting = new SynchronousDriver(parts, 'run').collect(never);
    await settle();
    await rollouts.end(success, group(0));
    const receipt = await (await collecting)?.quiet;
    assert.equal(receipt?.isComplete, false);
    assert.deepEqual(
      receipt.rollouts.map(({ how }) => how),
      ['abandoned'],
    );
  });

  it('answers null when the dataset has ended, and what is left of it before', async () => {
    const source = new GroupSource(rows(3), { ...sourceOptions, epochs: 1 });
    const rollouts = new ScriptedRollouts(() => success);
    const driver = new SynchronousDriver(
      scene({ groupSize: 2, batchGroups: 2 }, { rollouts, source }),
      'run',
    );
    const sizes = [];
    for (
      let batch = await driver.collect(never);
      batch !== null;
      batch = await driver.collect(never)
    )
      sizes.push(batch.groups.length);
    assert.deepEqual(sizes, [2, 1]);
  });
});

const sourceOptions = {
  ...{ groupSize: 2, shuffleSeed: null },
  from: collectorBegin,
};
