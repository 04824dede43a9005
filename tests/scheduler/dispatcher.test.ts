import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { silentLogger } from '../../src/core/logger.ts';
import { Dispatcher } from '../../src/scheduler/dispatcher.ts';
import { FailurePause } from '../../src/scheduler/failure-pause.ts';
import { LiveRollout } from '../../src/scheduler/live-rollout.ts';
import { MemoryQueue } from '../../src/scheduler/memory/memory-queue.ts';
import type { Lease, RolloutQueue } from '../../src/scheduler/queue.ts';
import { ManualClock } from '../fakes/manual-clock.ts';
import { until } from '../support/until.ts';

/** A queue whose leases end unless they are renewed, and which can fail. */
class LeasingQueue extends MemoryQueue implements RolloutQueue {
  override readonly renewEveryMs: number | null = 1_000;
  readonly renewed: string[] = [];
  isBroken = false;

  override async take(): Promise<Lease | null> {
    if (this.isBroken) throw new Error('the queue cannot be reached');
    const lease = await super.take();
    return lease === null
      ? null
      : {
          ...lease,
          renew: async () => {
            this.renewed.push(lease.entry.id);
            if (lease.entry.id === 'lost') throw new Error('it is lost');
          },
        };
  }
}

function bench() {
  const clock = new ManualClock();
  const life = new AbortController();
  const queue = new LeasingQueue({ weightOf: () => 1, monotonicMs: () => clock.monotonicMs() });
  const live = new Map<string, LiveRollout>();
  const ends = new Map<string, () => void>();
  const pause = new FailurePause(
    { afterFailures: 0, retryMs: 1 },
    { clock, onChange: () => undefined, signal: life.signal },
  );
  const dispatcher = new Dispatcher({
    ...{ queue, live, pause, clock, logger: silentLogger, stopping: life.signal },
    cap: () => 2,
    run: ({ id }) => new Promise((resolve) => ends.set(id, () => resolve('done'))),
  });
  const put = async (id: string): Promise<LiveRollout> => {
    const rollout = new LiveRollout({
      ...{ id, tenant: 'a', acceptedAt: clock.now(), acceptedMs: 0, waitMs: 1e9 },
      ...{ state: 'queued', attempt: 0, wantsSamples: false },
      reservation: { release: () => undefined, giveBack: () => undefined },
    });
    live.set(id, rollout);
    await queue.put({ id, tenant: 'a' });
    dispatcher.wake();
    return rollout;
  };
  return { clock, life, queue, live, ends, dispatcher, put };
}

describe('the dispatcher', () => {
  it('starts nothing before it is opened, then as many as may run', async () => {
    const { dispatcher, put, ends, queue } = bench();
    for (const id of ['r1', 'r2', 'r3']) await put(id);
    assert.equal(ends.size, 0);
    dispatcher.open();
    await until('two run', () => ends.size === 2);
    assert.deepEqual(queue.counts(), { queued: 1, leased: 2 });
    ends.get('r1')?.();
    await until('the third runs', () => ends.has('r3'));
    assert.equal(dispatcher.running, 2);
    const idle = dispatcher.idle();
    ends.get('r2')?.();
    ends.get('r3')?.();
    await idle;
    assert.deepEqual(queue.counts(), { queued: 0, leased: 0 });
  });

  it('does not start what was claimed while it waited, nor what is not known', async () => {
    const { dispatcher, put, ends, queue } = bench();
    (await put('cancelled')).claim('controller');
    await queue.put({ id: 'unknown', tenant: 'a' });
    await put('r1');
    dispatcher.open();
    await until('the other runs', () => ends.has('r1'));
    assert.deepEqual([...ends.keys()], ['r1']);
    assert.deepEqual(queue.counts(), { queued: 0, leased: 1 });
  });

  it('goes on when a queue that failed is back', async () => {
    const { clock, dispatcher, put, ends, queue } = bench();
    queue.isBroken = true;
    await put('r1');
    dispatcher.open();
    await until('it waits', () => clock.pauses.length > 0);
    queue.isBroken = false;
    clock.advance(1_000);
    await until('it runs', () => ends.has('r1'));
  });

  it('keeps the leases of what runs, and is not stopped by one that is lost', async () => {
    const { clock, life, dispatcher, put, ends, queue } = bench();
    for (const id of ['lost', 'r1']) await put(id);
    dispatcher.open();
    await until('both run', () => ends.size === 2);
    const keeping = dispatcher.keepLeases(life.signal);
    for (const round of [1, 2]) {
      await until('it waits', () => clock.pauses.includes(1_000));
      clock.advance(1_000);
      await until('they are renewed', () => queue.renewed.length === 2 * round);
    }
    life.abort();
    await keeping;
    assert.deepEqual(queue.renewed, ['lost', 'r1', 'lost', 'r1']);
  });
});
