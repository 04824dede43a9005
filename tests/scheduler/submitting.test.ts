import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { RolloutError } from '../../src/core/errors.ts';
import { MemoryQueue } from '../../src/scheduler/memory/memory-queue.ts';
import { MemoryRolloutStore } from '../../src/store/memory/memory-rollout-store.ts';
import { until } from '../support/until.ts';
import { operator, SchedulerBench } from './scheduler-bench.ts';

describe('submitting', () => {
  const refusedLimits: readonly [title: string, limits: object][] = [
    ['no bound on what runs', { maxConcurrent: Infinity }],
    ['nothing that may run', { maxConcurrent: 0 }],
    ['part of a place', { maxConcurrent: 1.5 }],
    ['no bound on what waits', { maxQueueDepth: Infinity }],
    ['less than nothing that waits', { maxQueueDepth: -1 }],
  ];
  for (const [title, limits] of refusedLimits)
    it(`is impossible with ${title}`, () => {
      assert.throws(() => new SchedulerBench(limits), { code: 'CONFIG_INVALID' });
    });

  it('has as many waiting as running places when nobody says how many', async () => {
    const bench = await SchedulerBench.started({ maxConcurrent: 3, maxQueueDepth: null });
    assert.equal(bench.scheduler.admission().capacity.max_queue_depth, 3);
  });

  it('ends what was accepted and cannot be queued, and frees its place once', async (t) => {
    const bench = await SchedulerBench.started();
    const breaks = () => Promise.reject(new Error('the queue is broken'));
    t.mock.method(MemoryQueue.prototype, 'put', breaks, { times: 1 });
    assert.equal((await bench.submit('r1')).kind, 'accepted');
    await bench.empty();
    assert.equal(await bench.state('r1'), 'failure');
    assert.equal(bench.scheduler.admission().capacity.in_flight, 0);
    assert.deepEqual(
      bench.callbacks.bodies('r1').map(({ channel }) => channel),
      ['completion', 'grader'],
    );
  });

  it('accepts exactly as many as there are places, however many come at once', async () => {
    const bench = await SchedulerBench.started({ maxConcurrent: 2, maxQueueDepth: 3 });
    const answers = await Promise.all(
      Array.from({ length: 40 }, (_, at) => bench.submit(`r${at}`)),
    );
    const accepted = answers.filter(({ kind }) => kind === 'accepted');
    assert.equal(accepted.length, 5);
    const refused = answers.find(({ kind }) => kind === 'refused');
    assert.deepEqual(refused, {
      ...{ kind: 'refused', reason: 'full', detail: 'rollout queue is full; retry later' },
      retryAfterS: 5,
    });
    assert.equal(bench.scheduler.admission().capacity.in_flight, 5);
  });

  it('refuses beyond the running places when nothing may wait', async () => {
    const bench = await SchedulerBench.started({ maxConcurrent: 1, maxQueueDepth: 0 });
    assert.equal((await bench.submit('r1')).kind, 'accepted');
    assert.equal((await bench.submit('r2')).kind, 'refused');
  });

  it('mints an id where there is none, and keeps it with the request', async () => {
    const bench = await SchedulerBench.started();
    const answer = await bench.submit(null);
    assert.ok(answer.kind === 'accepted');
    assert.match(answer.id, /^[0-9a-f]{32}$/);
    const { request } = (await bench.store.rollout(answer.id))!;
    assert.equal((JSON.parse(request) as { rollout_id: string }).rollout_id, answer.id);
  });

  it('answers a repeated id as before, another body under it with a conflict', async () => {
    const bench = await SchedulerBench.started({ maxConcurrent: 1, maxQueueDepth: 0 });
    await bench.submit('r1', { label: 'a' });
    const repeat = { kind: 'accepted', id: 'r1', isRepeat: true };
    // There is no place for anything new: the answer does not depend on that.
    assert.deepEqual(await bench.submit('r1', { label: 'a' }), repeat);
    assert.deepEqual(await bench.submit('r1', { label: 'b' }), { kind: 'conflict', id: 'r1' });
    (await bench.execution('r1')).succeed();
    await bench.empty();
    assert.deepEqual(await bench.submit('r1', { label: 'a' }), repeat);
    assert.deepEqual(await bench.submit('r1', { label: 'b' }), { kind: 'conflict', id: 'r1' });
    assert.equal(bench.scheduler.admission().capacity.in_flight, 0);
    assert.equal(bench.backend.executions.size, 1);
    await bench.stop();
    assert.deepEqual(await bench.submit('r1', { label: 'a' }), repeat);
    assert.equal((await bench.submit('r2')).kind, 'stopping');
  });

  it('runs an id once that comes twice at the same time', async () => {
    const bench = await SchedulerBench.started({ maxConcurrent: 8 });
    const answers = await Promise.all([1, 2, 3].map(() => bench.submit('r1')));
    assert.deepEqual(
      answers.map((answer) => answer.kind === 'accepted' && answer.isRepeat).sort(),
      [false, true, true],
    );
    assert.equal(bench.scheduler.admission().capacity.in_flight, 1);
  });

  it('hides the rollouts of a tenant from others', async () => {
    const bench = await SchedulerBench.started();
    await bench.submit('r1', {}, 'a');
    assert.deepEqual(await bench.submit('r1', {}, 'b'), { kind: 'conflict', id: 'r1' });
    assert.equal((await bench.scheduler.status('r1', { tenant: 'b' })).status, 'unknown');
    assert.equal(await bench.scheduler.inspect('r1', { tenant: 'b' }), null);
    assert.equal((await bench.scheduler.inspect('r1', { tenant: 'a' }))?.rollout.tenant, 'a');
    assert.equal((await bench.scheduler.list({ limit: 9 }, { tenant: 'b' })).length, 0);
    assert.equal(
      (await bench.scheduler.list({ limit: 9, tenant: 'a' }, { tenant: 'b' })).length,
      0,
    );
    assert.equal((await bench.scheduler.list({ limit: 9 }, operator)).length, 1);
    assert.equal(
      (await bench.scheduler.events({ after: 0, limit: 9 }, { tenant: 'b' })).events.length,
      0,
    );
  });

  const owners: readonly [id: string, caller: string | null, tenant: string][] = [
    ['x', null, 'default'],
    ['a::1', null, 'a'],
    ['a::b::1', null, 'ab'],
    ['a::1', 'b', 'b'],
  ];
  for (const [id, caller, tenant] of owners)
    it(`gives ${id} of ${caller ?? 'the operator'} to ${tenant}`, async () => {
      const bench = await SchedulerBench.started({
        tenants: [
          { name: 'a', weight: 1, idPrefix: 'a::' },
          { name: 'ab', weight: 1, idPrefix: 'a::b::' },
          { name: 'b', weight: 1, idPrefix: null },
        ],
      });
      await bench.submit(id, {}, caller);
      assert.equal((await bench.store.rollout(id))?.tenant, tenant);
    });

  it('is refused without a look into the store, which may be busy with a sync', async (t) => {
    const bench = await SchedulerBench.started({ maxConcurrent: 1, maxQueueDepth: 0 });
    await bench.submit('r1', { label: 'a' });
    const reads = t.mock.method(MemoryRolloutStore.prototype, 'rollout');
    assert.equal((await bench.submit('r2')).kind, 'refused');
    assert.equal(reads.mock.callCount(), 0);
  });

  it('answers a repeat of what is being accepted at that moment like any other', async () => {
    const bench = await SchedulerBench.started({ maxConcurrent: 1, maxQueueDepth: 0 });
    const answers = await Promise.all([bench.submit('r1'), bench.submit('r1')]);
    assert.deepEqual(answers, [
      { kind: 'accepted', id: 'r1', isRepeat: false },
      { kind: 'accepted', id: 'r1', isRepeat: true },
    ]);
  });

  it('is refused while the disk is full, and holds nothing then', async () => {
    const store = new MemoryRolloutStore(() => new Date());
    const accept = store.accept.bind(store);
    store.accept = () =>
      Promise.reject(new RolloutError('DISK_FULL', 'no space left', { phase: 'server' }));
    const bench = await SchedulerBench.started({ store });
    const answer = await bench.submit('r1');
    assert.ok(answer.kind === 'refused' && answer.reason === 'disk-full');
    assert.equal(bench.scheduler.admission().capacity.in_flight, 0);
    store.accept = accept;
    assert.equal((await bench.submit('r1')).kind, 'accepted');
  });

  it('loses no accepted rollout to a full disk: its changes are tried until there is space', async () => {
    const store = new MemoryRolloutStore(() => new Date());
    const bench = await SchedulerBench.started({ store });
    await bench.submit('r1');
    const execution = await bench.execution('r1');
    const change = store.change.bind(store);
    let refusals = 0;
    store.change = () => {
      refusals += 1;
      return Promise.reject(new RolloutError('DISK_FULL', 'no space', { phase: 'server' }));
    };
    execution.succeed();
    await until('the end was refused', () => refusals > 0);
    const view = await bench.scheduler.inspect('r1', operator);
    assert.equal(view?.progress?.waitingOn?.kind, 'disk');
    store.change = change;
    bench.clock.advance(10_000);
    await bench.reaches('r1', 'success');
    await bench.empty();
    assert.equal(bench.callbacks.bodies('r1').length, 2);
  });

  it('is refused before the scheduler has started', async () => {
    const bench = new SchedulerBench();
    assert.equal((await bench.submit('r1')).kind, 'stopping');
  });
});
