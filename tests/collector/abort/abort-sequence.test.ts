import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { abortPool } from '../../../src/collector/abort/abort-sequence.ts';
import type { EngineFleet, FleetEngine } from '../../../src/collector/abort/engine-fleet.ts';
import type { CollectorOptions } from '../../../src/collector/options.ts';
import { GroupPool } from '../../../src/collector/pool/group-pool.ts';
import { aborted, scene, ScriptedRollouts, settle, type Scene } from '../scripted-rollouts.ts';

const capabilities = {
  ...{ tokenInput: true, tokenIds: true, promptIds: true, logprobs: true, weightVersion: true },
  ...{ abortById: true, abortAll: true, pause: true, tokenize: true, load: true },
};
const hanging = (): Promise<never> => new Promise(() => undefined);
const idle = { runningRequests: 0, waitingRequests: 0, kvUse: null };

function engine(over: Partial<FleetEngine>): FleetEngine {
  return {
    ...{ url: 'http://e', capabilities },
    abortAll: () => Promise.resolve(),
    load: () => Promise.resolve(idle),
    ...over,
  };
}

const fleetOf = (...engines: readonly FleetEngine[]): EngineFleet => ({
  discover: () => Promise.resolve(engines),
  close: () => Promise.resolve(),
});

/** A group of two runs; its members end as soon as they are told. */
async function atWork(
  fleet: EngineFleet,
  options: CollectorOptions['abort'] = {},
): Promise<{
  readonly pool: GroupPool;
  readonly parts: Scene;
  readonly rollouts: ScriptedRollouts;
}> {
  const rollouts = new ScriptedRollouts();
  const abort = { engineMs: 40, pauseMs: 1, drainMs: 20, settleMs: 20_000, ...options };
  const parts = scene({ groupSize: 2, batchGroups: 1, abort }, { rollouts, fleet });
  const pool = new GroupPool(parts, 'run');
  const seed = parts.source.take();
  assert.ok(seed);
  pool.start(seed);
  await settle();
  return { pool, parts, rollouts };
}

describe('the abort', () => {
  for (const { title, fleet, problems, discovery, isComplete } of [
    {
      title: 'an engine that refuses',
      fleet: fleetOf(engine({ abortAll: () => Promise.reject(new Error('500')) }), engine({})),
      problems: ['500', null],
      ...{ discovery: null, isComplete: false },
    },
    {
      title: 'an engine that never answers',
      fleet: fleetOf(engine({ abortAll: hanging }), engine({})),
      problems: ['no answer within 40 ms', null],
      ...{ discovery: null, isComplete: false },
    },
    {
      title: 'an engine that does not say its load in time',
      fleet: fleetOf(engine({ load: hanging })),
      problems: ['no answer within 40 ms'],
      ...{ discovery: null, isComplete: false },
    },
    {
      title: 'an engine that cannot be told to end everything',
      fleet: fleetOf(engine({ capabilities: { ...capabilities, abortAll: false } })),
      problems: ['this kind of engine cannot be told to end everything'],
      ...{ discovery: null, isComplete: false },
    },
    {
      title: 'a router that is down',
      fleet: { ...fleetOf(), discover: () => Promise.reject(new Error('refused')) },
      problems: [],
      ...{ discovery: 'refused', isComplete: false },
    },
    {
      title: 'a router that never answers',
      fleet: { ...fleetOf(), discover: hanging },
      problems: [],
      ...{ discovery: 'no answer within 40 ms', isComplete: false },
    },
    {
      title: 'engines that do as they are told',
      fleet: fleetOf(engine({}), engine({})),
      problems: [null, null],
      ...{ discovery: null, isComplete: true },
    },
  ])
    it(`goes its way with ${title}`, async () => {
      const { pool, parts } = await atWork(fleet);
      const receipt = await abortPool(pool, 'stopped', parts);
      assert.deepEqual(
        receipt.engines.map(({ problem }) => problem),
        problems,
      );
      assert.equal(receipt.discoveryProblem, discovery);
      assert.equal(receipt.isComplete, isComplete);
      assert.equal(pool.pendingGroups, 0);
      assert.deepEqual(
        receipt.rollouts.map(({ how }) => how),
        ['ended', 'ended'],
      );
    });

  it('passes over an engine again until it has nothing left, and not over one that has nothing', async () => {
    let left = 4;
    let passesOfOther = 0;
    const busy = engine({
      abortAll: () => {
        left -= 1;
        return Promise.resolve();
      },
      load: () => Promise.resolve({ ...idle, waitingRequests: left }),
    });
    const other = engine({
      abortAll: () => {
        passesOfOther += 1;
        return Promise.resolve();
      },
    });
    const { pool, parts } = await atWork(fleetOf(busy, other));
    const receipt = await abortPool(pool, 'stopped', parts);
    assert.deepEqual(
      receipt.engines.map(({ passes, load }) => [passes, load]),
      [
        [4, 0],
        [1, 0],
      ],
    );
    assert.equal(passesOfOther, 1);
  });

  it('stops passing at its bound, and says what the engine has left', async () => {
    const never = engine({ load: () => Promise.resolve({ ...idle, runningRequests: 3 }) });
    const { pool, parts } = await atWork(fleetOf(never), { passes: 2 });
    const receipt = await abortPool(pool, 'stopped', parts);
    assert.deepEqual(receipt.engines[0], { url: 'http://e', passes: 3, load: 3, problem: null });
    assert.equal(receipt.isComplete, false);
  });

  it('keeps what finished meanwhile apart from what it ended, and turns away what waited', async () => {
    const rollouts = new ScriptedRollouts();
    const parts = scene(
      { groupSize: 4, batchGroups: 1, maxConcurrent: 3, abort: { drainMs: 20_000 } },
      { rollouts },
    );
    const pool = new GroupPool(parts, 'run');
    const seed = parts.source.take();
    assert.ok(seed);
    pool.start(seed);
    await settle();
    const aborting = abortPool(pool, 'batch-full', parts);
    await settle();
    const ends = [...rollouts.running.values()];
    ends[0]?.end({ ...aborted, status: 'completed', fault: null, reward: 1 });
    ends[1]?.end(aborted);
    ends[2]?.end(aborted);
    const receipt = await aborting;
    assert.deepEqual(
      receipt.rollouts.map(({ how }) => how),
      ['finished', 'ended', 'ended', 'not-started'],
    );
    assert.equal(rollouts.requests.length, 3);
  });
});
