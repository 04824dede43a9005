import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { MemoryRolloutStore } from '../../src/store/memory/memory-rollout-store.ts';
import { ManualClock } from '../fakes/manual-clock.ts';
import { until } from '../support/until.ts';
import { fired, operator, SchedulerBench, success } from './scheduler-bench.ts';

const ids = (...all: string[]) => ({ kind: 'ids', ids: all }) as const;

describe('a cancellation in the same moment', () => {
  it('sends no completion whose body was just being fixed when it came', async () => {
    const bench = await SchedulerBench.started();
    await bench.submit('r1');
    const execution = await bench.execution('r1');
    await execution.hooks.agentBegins();
    const [written, gate] = [
      Promise.withResolvers<undefined>(),
      Promise.withResolvers<undefined>(),
    ];
    const change = bench.store.change.bind(bench.store);
    bench.store.change = async (next) => {
      const isDone = await change(next);
      written.resolve(undefined);
      await gate.promise;
      return isDone;
    };
    const completed = execution.hooks.workflowCompleted(success(null));
    await written.promise;
    const cancelled = bench.scheduler.cancel(ids('r1'), operator);
    gate.resolve(undefined);
    await Promise.allSettled([completed, cancelled]);
    assert.equal((await cancelled).get('r1')?.disposition, 'cancelled_running');
    assert.equal((await bench.store.deliveries('r1'))[0]?.state, 'withdrawn');
    assert.deepEqual(bench.callbacks.bodies('r1'), []);
    await bench.empty();
  });

  it('waits for what an earlier life left to be known', async () => {
    const clock = new ManualClock();
    const store = new MemoryRolloutStore(() => clock.now());
    const first = await SchedulerBench.started({ store, clock });
    await first.submit('r1');
    await first.execution('r1');
    const bench = new SchedulerBench({ store, clock });
    const cancelled = bench.scheduler.cancel(ids('r1'), operator);
    await new Promise(setImmediate);
    await bench.scheduler.start();
    assert.match((await cancelled).get('r1')?.disposition ?? '', /^cancelled_/);
    await bench.empty();
    assert.deepEqual(bench.callbacks.bodies('r1'), []);
  });

  it('ends what a shutdown puts back, which would run after the restart', async () => {
    const bench = await SchedulerBench.started();
    await bench.submit('booting');
    await bench.submit('begun');
    await bench.execution('booting');
    const begun = await bench.execution('begun');
    await begun.hooks.agentBegins();
    const gate = Promise.withResolvers<undefined>();
    begun.abortGate = gate.promise;
    const stopped = bench.stop({ hurry: fired() });
    await until('the abort has come', () => begun.aborts.length === 1);
    const receipts = await bench.scheduler.cancel(ids('booting', 'begun'), operator);
    assert.equal(receipts.get('booting')?.disposition, 'cancelled_queued');
    assert.equal(receipts.get('begun')?.disposition, 'not_found');
    gate.resolve(undefined);
    await stopped;
    assert.equal(await bench.state('booting'), 'cancelled');
    assert.equal(await bench.state('begun'), 'failure');
    await bench.empty();
  });
});
