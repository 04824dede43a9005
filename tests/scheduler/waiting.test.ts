import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { until } from '../support/until.ts';
import { operator, SchedulerBench } from './scheduler-bench.ts';

describe('waiting for a running place', () => {
  const limits: readonly [
    title: string,
    timeout: Readonly<Record<string, unknown>>,
    longestMs: number,
  ][] = [
    ['the limit of the server', {}, 60_000],
    ['the limit of the agent where that is shorter', { agent_timeout_sec: 5 }, 5_000],
    ['the limit of the server where that is shorter', { agent_timeout_sec: 300 }, 60_000],
    [
      'the limit of the server where the agent has no time at all',
      { agent_timeout_sec: 0 },
      60_000,
    ],
  ];
  for (const [title, timeout, longestMs] of limits)
    it(`ends at ${title}, without starting and typed`, async () => {
      const bench = await SchedulerBench.started({ maxConcurrent: 1, queueTimeoutMs: 60_000 });
      await bench.submit('first', { agent_timeout_sec: 1 });
      await bench.execution('first');
      await bench.submit('r1', timeout);
      bench.clock.advance(longestMs - 100);
      await new Promise(setImmediate);
      assert.equal(await bench.state('r1'), 'queued');
      bench.clock.advance(100);
      await bench.reaches('r1', 'failure');
      const { outcome, startedAt } = (await bench.store.rollout('r1'))!;
      assert.equal(startedAt, null);
      assert.equal(outcome?.cause, 'QUEUE_TIMEOUT');
      assert.equal(outcome.stage, 'queue');
      assert.equal(outcome.errCategory, 'timeout');
      assert.deepEqual(
        bench.callbacks.bodies('r1').map(({ channel, body }) => [channel, body['err_category']]),
        [
          ['completion', 'timeout'],
          ['grader', 'timeout'],
        ],
      );
      // One that runs has left the queue behind.
      assert.equal(await bench.state('first'), 'running');
      (await bench.execution('first')).succeed();
      await bench.empty();
      assert.equal(bench.backend.executions.has('r1'), false);
      const [saved] = bench.archive.saved;
      assert.equal(saved?.rolloutId, 'r1');
    });

  it('says how long it waited to the backend, which charges it where its protocol does', async () => {
    const bench = await SchedulerBench.started({ maxConcurrent: 1 });
    await bench.submit('first');
    await bench.submit('r1', { agent_timeout_sec: 60 });
    bench.clock.advance(7_000);
    (await bench.execution('first')).succeed();
    const { request } = await bench.execution('r1');
    assert.equal(request.queuedMs, 7_000);
    assert.equal(request.agentTimeoutMs, 60_000);
  });

  it('is named, with who has to act and when it ends', async () => {
    const bench = await SchedulerBench.started({ maxConcurrent: 1, queueTimeoutMs: 60_000 });
    const acceptedAt = bench.clock.now();
    await bench.submit('r1');
    await bench.submit('r2');
    await bench.execution('r1');
    const view = await bench.scheduler.inspect('r2', operator);
    assert.deepEqual(view?.progress, {
      stage: 'queued',
      waitingOn: {
        ...{ kind: 'admission', owner: 'scheduler', since: acceptedAt },
        detail: '1 rollouts run, 1 may; 1 wait, 1 of them of tenant default',
        deadline: new Date(acceptedAt.getTime() + 60_000),
      },
      lastProgressAt: acceptedAt,
    });
  });

  it('has the places shared by weight between tenants that all have some waiting', async () => {
    const tenants = [
      { name: 'a', weight: 1, idPrefix: 'a' },
      { name: 'b', weight: 1, idPrefix: 'b' },
      { name: 'c', weight: 2, idPrefix: 'c' },
    ];
    const bench = await SchedulerBench.started({ maxConcurrent: 8, maxQueueDepth: 200, tenants });
    const begun: string[] = [];
    bench.backend.onExecute = ({ request }) => void begun.push(request.id);
    for (let n = 0; n < 40; n += 1)
      for (const tenant of ['a', 'b', 'c']) await bench.submit(`${tenant}${n}`);
    for (let ended = 0; ended < 60; ended += 1) {
      await until('places are filled', () => begun.length === ended + 8);
      const rows = bench.scheduler.admission().tenants.map(({ running }) => running);
      // The first eight came when nobody else waited.
      for (const [at, share] of ended < 16 ? [] : [0, 2, 2, 4].entries())
        assert.ok(Math.abs((rows[at] ?? 0) - share) <= 1, rows.join(' '));
      bench.clock.advance(100);
      bench.backend.executions.get(begun[ended]!)!.succeed();
    }
  });
});

describe('a pause after failures of the machine', () => {
  const pause = { afterFailures: 3, retryMs: 30_000 };

  const failing = async (bench: SchedulerBench, count: number): Promise<void> => {
    for (let at = 0; at < count; at += 1) {
      await bench.submit(`f${at}`);
      (await bench.execution(`f${at}`)).fail('ENVIRONMENT_START_FAILED');
      await bench.empty();
    }
  };

  it('refuses with the reason and the time, and one rollout decides when it is over', async () => {
    const bench = await SchedulerBench.started({ pause });
    await failing(bench, 3);
    const { paused, capacity } = bench.scheduler.admission();
    assert.match(paused?.reason ?? '', /3 rollouts in a row failed .* ENVIRONMENT_START_FAILED/);
    assert.equal(capacity.accepting, false);
    bench.clock.advance(10_000);
    const refused = await bench.submit('r1');
    assert.ok(refused.kind === 'refused' && refused.reason === 'paused');
    assert.equal(refused.retryAfterS, 20);

    bench.clock.advance(20_000);
    assert.equal((await bench.submit('probe')).kind, 'accepted');
    const probe = await bench.execution('probe');
    assert.equal((await bench.submit('r2')).kind, 'refused');
    probe.fail('ENGINE_UNAVAILABLE');
    await bench.empty();
    assert.equal((await bench.submit('r3')).kind, 'refused');

    bench.clock.advance(30_000);
    await bench.submit('second');
    (await bench.execution('second')).succeed();
    await bench.empty();
    assert.equal(bench.scheduler.admission().paused, null);
    assert.equal((await bench.submit('r4')).kind, 'accepted');
  });

  it('starts nothing that waits, until one of those is tried', async () => {
    const bench = await SchedulerBench.started({ pause, maxConcurrent: 3, maxQueueDepth: 9 });
    for (let at = 0; at < 6; at += 1) await bench.submit(`r${at}`);
    for (const id of ['r0', 'r1', 'r2']) await bench.execution(id);
    for (const id of ['r0', 'r1', 'r2']) (await bench.execution(id)).fail('ENVIRONMENT_LOST');
    await until('it is paused', () => bench.scheduler.admission().running === 0);
    assert.equal(bench.backend.executions.size, 3);
    const view = await bench.scheduler.inspect('r3', operator);
    assert.equal(view?.progress?.waitingOn?.kind, 'paused');
    bench.clock.advance(30_000);
    const probe = await bench.execution('r3');
    assert.equal(bench.backend.executions.size, 4);
    // Cancelled, it decides nothing; the next one is tried.
    await bench.scheduler.cancel({ kind: 'ids', ids: ['r3'] }, operator);
    assert.equal(probe.aborts.length, 1);
    (await bench.execution('r4')).succeed();
    await bench.execution('r5');
    assert.equal(bench.scheduler.admission().paused, null);
  });

  it('tries another one when the one that is tried cannot even be ended', async () => {
    const bench = await SchedulerBench.started({ pause, maxConcurrent: 1 });
    await failing(bench, 3);
    bench.clock.advance(30_000);
    await bench.submit('probe');
    const probe = await bench.execution('probe');
    const change = bench.store.change.bind(bench.store);
    bench.store.change = async (next) => next.id !== 'probe' && (await change(next));
    probe.succeed();
    await until('its place is free', () => bench.scheduler.admission().running === 0);
    assert.equal((await bench.submit('r1')).kind, 'accepted');
    (await bench.execution('r1')).succeed();
    await bench.reaches('r1', 'success');
    await until('it is over', () => bench.scheduler.admission().paused === null);
  });

  it('comes only when they are in a row, and only from the machine', async () => {
    const bench = await SchedulerBench.started({ pause });
    await failing(bench, 2);
    await bench.submit('agent');
    (await bench.execution('agent')).fail('AGENT_FAILED');
    await bench.empty();
    await bench.submit('f');
    (await bench.execution('f')).fail('ENVIRONMENT_LOST');
    await bench.empty();
    assert.equal(bench.scheduler.admission().paused, null);
  });
});

describe('the cap that follows the engine', () => {
  it('lets fewer run within two looks of a full cache, and all again when it is empty', async () => {
    let kvUse: number | null = 0.3;
    const bench = await SchedulerBench.started({
      maxConcurrent: 8,
      maxQueueDepth: 40,
      engineLoad: () => Promise.resolve({ runningRequests: 0, waitingRequests: 0, kvUse }),
    });
    const look = async (): Promise<void> => {
      await until('it waits for its next look', () => bench.clock.pauses.includes(500));
      bench.clock.advance(500);
      await until('it has looked', () => bench.clock.pauses.includes(500));
    };
    for (let at = 0; at < 30; at += 1) await bench.submit(`r${at}`);
    await until('eight run', () => bench.backend.executions.size === 8);
    kvUse = 0.95;
    await look();
    assert.equal(bench.scheduler.admission().runningCap, 6);
    // Those that run still fill it: the cut has not taken effect, there is no second one.
    await look();
    assert.equal(bench.scheduler.admission().runningCap, 6);
    for (let at = 0; at < 3; at += 1) (await bench.execution(`r${at}`)).succeed();
    await until('one more runs', () => bench.backend.executions.size === 9);
    assert.equal(bench.scheduler.admission().running, 6);
    for (let at = 0; at < 9; at += 1) {
      await look();
      for (const execution of [...bench.backend.executions.values()]) execution.succeed();
      const { runningCap } = bench.scheduler.admission();
      await until('the cap is kept', () => bench.scheduler.admission().running <= runningCap);
    }
    assert.equal(bench.scheduler.admission().runningCap, 1);
    kvUse = 0.85;
    await look();
    assert.equal(bench.scheduler.admission().runningCap, 1);
    kvUse = 0.5;
    await look();
    assert.equal(bench.scheduler.admission().runningCap, 2);
    for (let at = 0; at < 7; at += 1) await look();
    assert.equal(bench.scheduler.admission().runningCap, 8);
    kvUse = null;
    await look();
    assert.equal(bench.scheduler.admission().runningCap, 8);
    await bench.stop({ hurry: AbortSignal.abort(), force: AbortSignal.abort() });
  });
});
