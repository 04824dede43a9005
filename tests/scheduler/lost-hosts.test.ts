/** What becomes of a rollout whose host is lost while it runs. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { RolloutError } from '../../src/core/errors.ts';
import { MemoryQueue } from '../../src/scheduler/memory/memory-queue.ts';
import { until } from '../support/until.ts';
import { operator, SchedulerBench } from './scheduler-bench.ts';

const lost = (): RolloutError =>
  new RolloutError('WORKER_LOST', 'its host is gone', { phase: 'server' });

describe('a rollout whose host is lost', () => {
  it('waits again and runs on another one when its agent has not begun', async () => {
    const bench = await SchedulerBench.started({ maxConcurrent: 1 });
    await bench.submit('r');
    const first = await bench.execution('r');
    bench.backend.executions.delete('r');
    first.break(lost());
    const second = await bench.execution('r');
    assert.notEqual(second, first);
    await second.hooks.agentBegins();
    assert.equal((await bench.store.rollout('r'))?.attempt, 1);
    second.succeed(1);
    await until('it ends', async () => (await bench.store.rollout('r'))?.state === 'success');
    const { events } = await bench.scheduler.events({ after: 0, limit: 100 }, operator);
    assert.deepEqual(
      events.map(({ type }) => type).filter((type) => type.startsWith('rollout:')),
      [
        ...['rollout:queued', 'rollout:started', 'rollout:requeued'],
        ...['rollout:started', 'rollout:ended'],
      ],
    );
  });

  it('ends as a typed failure when its agent has begun', async () => {
    const bench = await SchedulerBench.started({ maxConcurrent: 1 });
    await bench.submit('r');
    const execution = await bench.execution('r');
    await execution.hooks.agentBegins();
    execution.break(lost());
    await until('it ends', async () => (await bench.store.rollout('r'))?.state === 'failure');
    const outcome = (await bench.store.rollout('r'))?.outcome;
    assert.deepEqual([outcome?.cause, outcome?.retryable], ['WORKER_LOST', true]);
  });

  it('stays cancelled when it is cancelled in that moment', async () => {
    const bench = await SchedulerBench.started({ maxConcurrent: 1 });
    await bench.submit('r');
    const execution = await bench.execution('r');
    const cancelled = bench.scheduler.cancel({ kind: 'ids', ids: ['r'] }, operator);
    execution.break(lost());
    await cancelled;
    assert.equal((await bench.store.rollout('r'))?.state, 'cancelled');
    await until('its place is free', () => bench.scheduler.admission().running === 0);
    assert.equal(bench.scheduler.admission().queued, 0);
  });

  it('starts nowhere while no host has a place', async () => {
    let places = 0;
    const listeners: (() => void)[] = [];
    const bench = await SchedulerBench.started({
      hosts: {
        openQueue: (parts) => new MemoryQueue(parts),
        places: () => places,
        onPlaces: (listener) => listeners.push(listener),
      },
    });
    await bench.submit('r');
    assert.equal(bench.scheduler.admission().running, 0);
    places = 1;
    for (const listener of listeners) listener();
    await bench.execution('r');
  });
});
