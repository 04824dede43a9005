import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { RolloutError } from '../../src/core/errors.ts';
import { until } from '../support/until.ts';
import { operator, SchedulerBench, success } from './scheduler-bench.ts';

const ids = (...all: string[]) => ({ kind: 'ids', ids: all }) as const;

describe('cancelling', () => {
  it('ends a rollout that waits, which never starts and sends nothing', async () => {
    const bench = await SchedulerBench.started({ maxConcurrent: 1 });
    await bench.submit('r1');
    await bench.submit('r2');
    await bench.execution('r1');
    const receipts = await bench.scheduler.cancel(ids('r2'), operator);
    assert.equal(receipts.get('r2')?.disposition, 'cancelled_queued');
    assert.equal(receipts.get('r2')?.stage, 'queued');
    assert.equal(await bench.state('r2'), 'cancelled');
    (await bench.execution('r1')).succeed();
    await bench.empty();
    assert.equal(bench.backend.executions.has('r2'), false);
    assert.deepEqual(bench.callbacks.bodies('r2'), []);
  });

  it('ends a rollout that runs: its model calls, what its backend runs, then the state', async () => {
    const bench = await SchedulerBench.started();
    await bench.submit('r1');
    const execution = await bench.execution('r1');
    await execution.hooks.agentBegins();
    const receipt = (await bench.scheduler.cancel(ids('r1'), operator)).get('r1');
    assert.equal(receipt?.disposition, 'cancelled_running');
    assert.equal(receipt.modelCallsEnded, 2);
    assert.equal(receipt.processesKilled, 3);
    assert.deepEqual(receipt.confirmedGone, ['processes']);
    assert.equal(receipt.isComplete, true);
    assert.equal(execution.aborts.length, 1);
    await bench.empty();
    assert.equal(bench.scheduler.admission().running, 0);
    assert.deepEqual(bench.callbacks.bodies('r1'), []);
    assert.equal(execution.isReleased, true);
    assert.deepEqual(bench.news.at(-1), 'r1 settled');
    assert.equal((await bench.store.rollout('r1'))?.outcome?.cause, 'CANCELLED');
  });

  it('answers within its time when the disk is full, says so, and is durable when there is space', async () => {
    const bench = await SchedulerBench.started();
    await bench.submit('r1');
    const execution = await bench.execution('r1');
    const change = bench.store.change.bind(bench.store);
    bench.store.change = () =>
      Promise.reject(new RolloutError('DISK_FULL', 'no space', { phase: 'server' }));
    const cancelling = bench.scheduler.cancel(ids('r1'), operator);
    let receipts: Awaited<typeof cancelling> | null = null;
    void cancelling.then((value) => (receipts = value));
    await until('it is answered', () => {
      bench.clock.advance(50);
      return receipts !== null;
    });
    const receipt = (await cancelling).get('r1');
    assert.equal(receipt?.disposition, 'cancelled_running');
    assert.equal(receipt.isComplete, false);
    assert.match(receipt.problem ?? '', /cannot write/);
    assert.equal(execution.aborts.length, 1, 'what ran has been ended');
    assert.equal(await bench.state('r1'), 'running');
    bench.store.change = change;
    await until('it is written', async () => {
      bench.clock.advance(1_000);
      return (await bench.state('r1')) === 'cancelled';
    });
    const [durable] = await bench.store.receipts('r1');
    assert.deepEqual([durable?.isComplete, durable?.problem], [true, null]);
    await bench.empty();
  });

  it('withdraws a completion that was not delivered', async () => {
    const bench = await SchedulerBench.started();
    bench.callbacks.isHeld = true;
    await bench.submit('r1');
    const execution = await bench.execution('r1');
    await execution.hooks.workflowCompleted(success(null));
    const cancelled = await bench.scheduler.cancel(ids('r1'), operator);
    assert.equal(cancelled.get('r1')?.disposition, 'cancelled_running');
    const [completion] = await bench.store.deliveries('r1');
    assert.equal(completion?.state, 'withdrawn');
  });

  it('gives the same receipt twice, also at the same time and after the end', async () => {
    const bench = await SchedulerBench.started();
    await bench.submit('r1');
    await bench.execution('r1');
    const [one, two] = await Promise.all([
      bench.scheduler.cancel(ids('r1'), operator),
      bench.scheduler.cancel(ids('r1', 'r1'), operator),
    ]);
    await bench.empty();
    bench.clock.advance(5_000);
    const three = await bench.scheduler.cancel(ids('r1'), operator);
    assert.deepEqual(two.get('r1'), one.get('r1'));
    assert.deepEqual(three.get('r1'), one.get('r1'));
    assert.equal((await bench.store.receipts('r1')).length, 1);
  });

  it('buries an id that has not come, so that it is refused when it does', async () => {
    const bench = await SchedulerBench.started();
    const receipts = await bench.scheduler.cancel(ids('later'), operator);
    assert.equal(receipts.get('later')?.disposition, 'not_found');
    assert.deepEqual(await bench.submit('later'), { kind: 'tombstone', id: 'later' });
    assert.equal(bench.scheduler.admission().capacity.in_flight, 0);
    const again = await bench.scheduler.cancel(ids('later'), operator);
    assert.deepEqual(again.get('later'), receipts.get('later'));
  });

  it('does not find what has ended, and does not change it', async () => {
    const bench = await SchedulerBench.started();
    await bench.submit('r1');
    (await bench.execution('r1')).succeed();
    await bench.empty();
    const receipts = await bench.scheduler.cancel(ids('r1'), operator);
    assert.equal(receipts.get('r1')?.disposition, 'not_found');
    assert.equal(await bench.state('r1'), 'success');
  });

  it('loses against a result that came first, and its callbacks go out', async () => {
    const bench = await SchedulerBench.started();
    await bench.submit('r1');
    (await bench.execution('r1')).succeed();
    await until('the result is taken', async () => (await bench.state('r1')) !== 'running');
    const receipts = await bench.scheduler.cancel(ids('r1'), operator);
    assert.equal(receipts.get('r1')?.disposition, 'not_found');
    await bench.empty();
    assert.equal(bench.callbacks.bodies('r1').length, 2);
  });

  it('reaches a rollout between its running place and its execution', async () => {
    const bench = await SchedulerBench.started();
    const registered = Promise.withResolvers<undefined>();
    const register = bench.gateway.register.bind(bench.gateway);
    let isAsked = false;
    bench.gateway.register = async (route) => {
      isAsked = true;
      await registered.promise;
      return await register(route);
    };
    await bench.submit('r1');
    await until('its route is asked for', () => isAsked);
    const receipts = await bench.scheduler.cancel(ids('r1'), operator);
    assert.equal(receipts.get('r1')?.disposition, 'cancelled_running');
    registered.resolve(undefined);
    await bench.empty();
    assert.equal(bench.backend.executions.size, 0);
    assert.equal(bench.gateway.routes.size, 0);
  });

  it('is no defect of a rollout that still waits for a host', async () => {
    const bench = await SchedulerBench.started();
    const placed = Promise.withResolvers<never>();
    let isAsked = false;
    bench.gateway.register = async () => {
      isAsked = true;
      return await placed.promise;
    };
    bench.gateway.abort = async () => {
      placed.reject(new RolloutError('CANCELLED', 'not wanted any more', { phase: 'queue' }));
      return { callsEnded: 0 };
    };
    await bench.submit('r1');
    await until('its route is asked for', () => isAsked);
    await bench.scheduler.cancel(ids('r1'), operator);
    await bench.empty();
    assert.equal((await bench.store.rollout('r1'))?.state, 'cancelled');
    const errors = bench.logged.filter((line) => line.startsWith('error:'));
    assert.deepEqual(errors, []);
  });

  it('reaches a rollout that is just being accepted', async () => {
    const bench = await SchedulerBench.started();
    const [answer, receipts] = await Promise.all([
      bench.submit('r1'),
      bench.scheduler.cancel(ids('r1'), operator),
    ]);
    assert.equal(answer.kind, 'accepted');
    assert.match(receipts.get('r1')?.disposition ?? '', /^cancelled_/);
    await bench.empty();
    assert.equal(await bench.state('r1'), 'cancelled');
  });

  it('lets no agent begin and no workflow complete any more', async () => {
    const bench = await SchedulerBench.started();
    await bench.submit('r1');
    const execution = await bench.execution('r1');
    const gate = Promise.withResolvers<undefined>();
    execution.abortGate = gate.promise;
    const cancelled = bench.scheduler.cancel(ids('r1'), operator);
    await until('the abort has come', () => execution.aborts.length === 1);
    await assert.rejects(execution.hooks.agentBegins());
    await assert.rejects(execution.hooks.workflowCompleted(success(null)));
    gate.resolve(undefined);
    await cancelled;
    assert.deepEqual(bench.callbacks.bodies('r1'), []);
  });

  it('answers in time about what is not gone yet; its place is free when it is', async () => {
    const bench = await SchedulerBench.started({ maxConcurrent: 1, cancelMs: 2_000 });
    await bench.submit('r1');
    await bench.submit('r2');
    const execution = await bench.execution('r1');
    const gate = Promise.withResolvers<undefined>();
    execution.abortGate = gate.promise;
    const cancelled = bench.scheduler.cancel(ids('r1'), operator);
    await until('the abort has come', () => execution.aborts.length === 1);
    bench.clock.advance(2_000);
    const receipt = (await cancelled).get('r1');
    assert.equal(receipt?.isComplete, false);
    assert.match(receipt.problem ?? '', /not everything of it was gone within 2 s/);
    assert.equal(await bench.state('r1'), 'cancelled');
    assert.equal(bench.scheduler.admission().running, 1);
    assert.equal(bench.backend.executions.has('r2'), false);
    gate.resolve(undefined);
    await bench.execution('r2');
  });

  it('takes what a prefix or everything selects, of the live ones that the caller may see', async () => {
    const tenants = [
      { name: 'a', weight: 1, idPrefix: 'a::' },
      { name: 'b', weight: 1, idPrefix: 'b::' },
    ];
    const bench = await SchedulerBench.started({ maxConcurrent: 8, tenants });
    for (const id of ['a::1', 'a::2', 'b::1', 'old']) await bench.submit(id);
    (await bench.execution('old')).succeed();
    await bench.reaches('old', 'success');
    const cancel = async (
      selector: Parameters<typeof bench.scheduler.cancel>[0],
      who: string | null,
    ) => [...(await bench.scheduler.cancel(selector, { tenant: who })).keys()].sort();
    assert.deepEqual(await cancel({ kind: 'prefix', prefix: 'a::1' }, null), ['a::1']);
    assert.deepEqual(await cancel({ kind: 'prefix', prefix: 'a' }, 'b'), []);
    assert.deepEqual(await cancel({ kind: 'all' }, 'a'), ['a::2']);
    assert.deepEqual(await cancel({ kind: 'all' }, null), ['b::1']);
  });

  it('touches nothing of another tenant, and buries none of its ids', async () => {
    const tenants = [
      { name: 'a', weight: 1, idPrefix: 'a::' },
      { name: 'b', weight: 1, idPrefix: 'b::' },
    ];
    const bench = await SchedulerBench.started({ tenants });
    await bench.submit('a::1', {}, 'a');
    await bench.execution('a::1');
    const receipts = await bench.scheduler.cancel(ids('a::1', 'a::2'), { tenant: 'b' });
    assert.deepEqual(
      [...receipts.values()].map(({ disposition }) => disposition),
      ['not_found', 'not_found'],
    );
    assert.equal(await bench.state('a::1'), 'running');
    assert.equal((await bench.submit('a::2', {}, 'a')).kind, 'accepted');
  });
});
