import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { never } from '../../../src/core/linked-abort.ts';
import { OneStepAheadDriver } from '../../../src/collector/drivers/one-step-ahead-driver.ts';
import type { MemberRequest } from '../../../src/collector/member.ts';
import { lost, scene, ScriptedRollouts, settle, success } from '../scripted-rollouts.ts';

const group =
  (...indexes: readonly number[]) =>
  ({ groupIndex }: MemberRequest): boolean =>
    indexes.includes(groupIndex);
const quick = { abort: { drainMs: 20, settleMs: 20 } };
const indexesOf = (batch: { groups: readonly { seed: { groupIndex: number } }[] } | null) =>
  batch?.groups.map(({ seed }) => seed.groupIndex);

describe('the one-step-ahead driver', () => {
  it('collects the next batch while the trainer works, and ends what that one does not need', async () => {
    const rollouts = new ScriptedRollouts();
    const parts = scene({ groupSize: 1, batchGroups: 1, startGroups: 2, ...quick }, { rollouts });
    const driver = new OneStepAheadDriver(parts, 'run');
    const first = driver.collect(never);
    await settle();
    await rollouts.end(success, group(1));
    assert.deepEqual(indexesOf(await first), [1]);
    await (
      await first
    )?.quiet;
    await settle();
    assert.deepEqual([...rollouts.running.keys()], ['run-g2-m0-a1', 'run-g3-m0-a1']);
    await rollouts.end(success, group(3));
    await driver.settled();
    assert.equal(rollouts.running.size, 0);
    // It is full, and nobody has it: a restart would roll it out again.
    assert.deepEqual(
      parts.source.position.open.map(({ groupIndex }) => groupIndex),
      [3],
    );
    const second = await driver.collect(never);
    assert.deepEqual(indexesOf(second), [3]);
    assert.deepEqual(second?.report().drops, { aborted: 1 });
    const receipt = await driver.stop('shutdown');
    assert.equal(receipt?.isComplete, true);
    assert.equal(rollouts.running.size, 0);
  });

  it('tells whoever collects next what went wrong with it, and then goes on', async () => {
    const rollouts = new ScriptedRollouts(({ groupIndex }) =>
      groupIndex >= 1 && groupIndex <= 3 ? lost : success,
    );
    const options = { groupSize: 1, batchGroups: 1, maxAttempts: 1, maxLostGroups: 3 };
    const driver = new OneStepAheadDriver(scene(options, { rollouts }), 'run');
    assert.deepEqual(indexesOf(await driver.collect(never)), [0]);
    await assert.rejects(driver.collect(never), { code: 'COLLECTION_STALLED' });
    assert.deepEqual(indexesOf(await driver.collect(never)), [4]);
    await driver.stop('stopped');
  });

  it('keeps a full batch over the end of a caller', async () => {
    const rollouts = new ScriptedRollouts();
    const parts = scene({ groupSize: 1, batchGroups: 1, ...quick }, { rollouts });
    const driver = new OneStepAheadDriver(parts, 'run');
    const caller = new AbortController();
    const collecting = driver.collect(caller.signal);
    await settle();
    caller.abort(new Error('enough'));
    await assert.rejects(collecting, /enough/);
    assert.equal(rollouts.running.size, 0);
    const again = driver.collect(never);
    await settle();
    await rollouts.end(success);
    await again;
    await settle();
    await rollouts.end(success);
    await driver.stop('stopped');
    const [next] = rollouts.requests.slice(-1);
    assert.deepEqual(indexesOf(await driver.collect(never)), [next?.groupIndex]);
    await driver.stop('stopped');
  });
});
