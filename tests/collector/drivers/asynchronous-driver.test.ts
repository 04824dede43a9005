import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { never } from '../../../src/core/linked-abort.ts';
import { AsynchronousDriver } from '../../../src/collector/drivers/asynchronous-driver.ts';
import type { AsynchronousOptions } from '../../../src/collector/drivers/asynchronous-options.ts';
import type { Batch } from '../../../src/collector/batch.ts';
import type { MemberEnd, MemberRequest } from '../../../src/collector/member.ts';
import type { CollectorOptions } from '../../../src/collector/options.ts';
import { lost, scene, ScriptedRollouts, settle, success } from '../scripted-rollouts.ts';

const group =
  (...indexes: readonly number[]) =>
  ({ groupIndex }: MemberRequest): boolean =>
    indexes.includes(groupIndex);
const indexesOf = (batch: Batch | null) => batch?.groups.map(({ seed }) => seed.groupIndex);

/** A driver of single rollouts, one a batch, whose weights have a version that the test sets. */
function stage(
  { options = {}, ...asynchronous }: AsynchronousOptions & { readonly options?: CollectorOptions },
  script?: (request: MemberRequest) => MemberEnd | null,
) {
  const rollouts = new ScriptedRollouts(script);
  const weights = { version: 1 };
  const abort = { drainMs: 20, settleMs: 20 };
  const parts = scene(
    { groupSize: 1, batchGroups: 1, abort, ...options },
    { rollouts, weightVersion: () => weights.version },
  );
  const driver = new AsynchronousDriver(parts, 'run', asynchronous);
  const runningGroups = (): readonly number[] =>
    [...rollouts.running.values()].map(({ request }) => request.groupIndex);
  return { rollouts, weights, parts, driver, runningGroups };
}

const sampledBy = (weightVersion: string): MemberEnd => ({
  ...success,
  samples: [
    {
      ...{ tokens: [1, 2], promptLength: 1, lossMask: [1], logprobs: [-1], weight: 1 },
      ...{ isTruncated: false, spans: [{ begin: 1, end: 2, isTrained: true, weightVersion }] },
    },
  ],
});

describe('the asynchronous driver', () => {
  it('goes on while nobody asks, until its buffer is full', async () => {
    const { driver, rollouts } = stage(
      { bufferGroups: 3, options: { startGroups: 2 } },
      () => success,
    );
    await driver.collect(never);
    await settle();
    assert.equal(driver.bufferedGroups, 3);
    assert.equal(rollouts.requests.length, 4);
    assert.deepEqual(indexesOf(await driver.collect(never)), [1]);
    await settle();
    assert.equal(rollouts.requests.length, 5);
    assert.equal(await driver.stop('stopped'), null);
    assert.equal(driver.bufferedGroups, 3);
  });

  it('counts groups at work and groups that wait together', async () => {
    const { driver, rollouts } = stage({ bufferGroups: 4, options: { startGroups: 3 } });
    const collecting = driver.collect(never);
    await settle();
    assert.equal(rollouts.running.size, 3);
    await rollouts.end(success, group(0, 1));
    await collecting;
    await settle();
    assert.equal(rollouts.running.size + driver.bufferedGroups, 4);
    await driver.stop('stopped');
    assert.equal(rollouts.running.size, 0);
  });

  it('ends what is too old where it runs, and leaves the rest alone', async () => {
    const { driver, rollouts, weights, parts, runningGroups } = stage({
      ...{ maxStaleness: 1, options: { startGroups: 2 } },
    });
    const collecting = driver.collect(never);
    await settle();
    weights.version = 2;
    driver.weightsChanged();
    await rollouts.end(success, group(0));
    await collecting;
    await settle();
    assert.deepEqual(runningGroups(), [1, 2]);
    weights.version = 3;
    driver.weightsChanged();
    while (rollouts.stopped.length === 0 || runningGroups().length < 2) await settle();
    assert.deepEqual(rollouts.stopped, ['run-g1-m0-a1']);
    assert.deepEqual(runningGroups(), [2, 3]);
    const receipts = parts.events.filter((event) => event.type === 'abort:ended');
    assert.deepEqual(
      receipts.map(({ receipt }) => [receipt.reason, receipt.rollouts.map(({ how }) => how)]),
      [['stale', ['ended']]],
    );
    await driver.stop('stopped');
  });

  for (const { limit, handedOver } of [
    { limit: 0, handedOver: 3 },
    { limit: 1, handedOver: 2 },
    { limit: 4, handedOver: 1 },
    { limit: null, handedOver: 1 },
  ])
    it(`hands over nothing that waited for too long: at most ${String(limit)} versions behind`, async () => {
      const { driver, rollouts, weights } = stage({ maxStaleness: limit, bufferGroups: 4 });
      const first = driver.collect(never);
      await settle();
      await rollouts.end(success);
      await first;
      for (const version of [1, 2, 3]) {
        await settle(); // the group of this version is started
        weights.version = Math.min(3, version + 1);
        await rollouts.end(success, group(version));
      }
      assert.deepEqual(indexesOf(await driver.collect(never)), [handedOver]);
      await driver.stop('stopped');
    });

  it('believes the engine where that names older weights than the trainer', async () => {
    const { driver, weights, parts } = stage({ maxStaleness: 0 }, ({ groupIndex }) =>
      sampledBy(groupIndex === 0 ? '6' : '7'),
    );
    weights.version = 7;
    assert.deepEqual(indexesOf(await driver.collect(never)), [1]);
    const dropped = parts.events.filter((event) => event.type === 'group:dropped');
    assert.deepEqual(
      dropped.map((event) => [event.group.seed.groupIndex, event.group.reason]),
      [[0, 'stale']],
    );
    await driver.stop('stopped');
  });

  it('serves the rows of stale groups again where it is told to, but not for ever', async () => {
    const { driver, weights, parts } = stage(
      { maxStaleness: 0, stale: 'return', options: { maxAttempts: 3 } },
      ({ groupIndex }) => sampledBy(groupIndex === 0 ? '6' : '7'),
    );
    weights.version = 7;
    await driver.collect(never);
    await driver.stop('stopped');
    const told = parts.events.flatMap((event) => {
      if (event.type === 'group:returned') return [event.type];
      return event.type === 'group:dropped' ? [event.group.reason] : [];
    });
    assert.deepEqual(told, ['group:returned', 'group:returned', 'stale']);
  });

  it('starts nothing in a pause, and lets what runs come to its end', async () => {
    const { driver, rollouts } = stage({ options: { startGroups: 2 } });
    const collecting = driver.collect(never);
    await settle();
    driver.pause();
    await rollouts.end(success);
    assert.deepEqual(indexesOf(await collecting), [0]);
    await settle();
    assert.equal(rollouts.requests.length, 2);
    driver.resume();
    await settle();
    assert.equal(rollouts.requests.length, 3);
    await driver.stop('stopped');
  });

  it('tells whoever collects next that group after group came to nothing', async () => {
    const options = { maxAttempts: 1, maxLostGroups: 5 };
    const { driver, rollouts } = stage({ options }, () => lost);
    await assert.rejects(driver.collect(never), { code: 'COLLECTION_STALLED' });
    assert.equal(rollouts.requests.length, 5);
  });

  it('ends a call that waits when it is stopped, and goes on with the next one', async () => {
    const { driver, rollouts } = stage({});
    const collecting = driver.collect(never);
    await settle();
    const [receipt] = await Promise.all([
      driver.stop('stopped'),
      assert.rejects(collecting, /collecting ends: stopped/),
    ]);
    assert.equal(receipt?.isComplete, true);
    assert.equal(rollouts.running.size, 0);
    const next = driver.collect(never);
    await settle();
    await rollouts.end(success);
    assert.equal((await next)?.groups.length, 1);
    await driver.stop('stopped');
  });

  const refused: readonly Record<string, unknown>[] = [
    { bufferGroups: 1 },
    { maxStaleness: -1 },
    { colour: 'red' },
  ];
  for (const options of refused)
    it(`refuses ${JSON.stringify(options)}`, () => {
      assert.throws(() => stage({ ...options, options: { batchGroups: 2 } }), {
        code: 'CONFIG_INVALID',
      });
    });
});
