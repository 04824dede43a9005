import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { MemoryRolloutStore } from '../../src/store/memory/memory-rollout-store.ts';
import type { RolloutStore } from '../../src/store/rollout-store.ts';
import { ManualClock } from '../fakes/manual-clock.ts';
import { until } from '../support/until.ts';
import { fired, operator, SchedulerBench, success } from './scheduler-bench.ts';

/** The store as a process sees it that is killed: from then on nothing that it still does arrives. */
function untilKilled(store: RolloutStore, killed: AbortSignal): RolloutStore {
  return new Proxy(store, {
    get: (target, name) => {
      const value: unknown = Reflect.get(target, name);
      if (typeof value !== 'function') return value;
      if (killed.aborted) return () => new Promise(() => undefined);
      return (...given: unknown[]): unknown => Reflect.apply(value, target, given);
    },
  });
}

/** Two lives of a server on one store. */
async function secondLife(
  first: (bench: SchedulerBench) => Promise<void>,
  options: {
    readonly awayMs?: number;
    readonly queueTimeoutMs?: number;
    /** Nobody takes callbacks after the restart. */
    readonly isHeld?: boolean;
    /** Before the second life starts. */
    readonly prepare?: (bench: SchedulerBench) => void;
  } = {},
): Promise<SchedulerBench> {
  const clock = new ManualClock();
  const store = new MemoryRolloutStore(() => clock.now());
  const { queueTimeoutMs = 3_600_000, isHeld = false } = options;
  const kill = new AbortController();
  const mortal = untilKilled(store, kill.signal);
  const dead = await SchedulerBench.started({ store: mortal, clock, queueTimeoutMs });
  dead.callbacks.isHeld = true;
  await first(dead);
  kill.abort();
  clock.advance(options.awayMs ?? 0);
  const bench = new SchedulerBench({ store, clock, queueTimeoutMs });
  bench.callbacks.isHeld = isHeld;
  options.prepare?.(bench);
  await bench.scheduler.start();
  return bench;
}

describe('a restart', () => {
  it('runs again what waited, and what ran without its agent having begun', async () => {
    const bench = await secondLife(async (dead) => {
      for (const id of ['r1', 'r2', 'r3']) await dead.submit(id);
      await dead.execution('r1');
      await dead.execution('r2');
      assert.equal((await dead.store.rollout('r1'))?.attempt, 1);
    });
    assert.equal(bench.scheduler.admission().capacity.in_flight, 3);
    for (const id of ['r1', 'r2', 'r3']) (await bench.execution(id)).succeed();
    await bench.empty();
    for (const id of ['r1', 'r2', 'r3']) {
      assert.equal(await bench.state(id), 'success');
      assert.equal((await bench.store.rollout(id))?.attempt, 1);
      assert.equal(bench.callbacks.bodies(id).length, 2);
    }
    const events = (await bench.events()).filter((event) => event.endsWith('requeued'));
    assert.deepEqual(events.sort(), ['r1 rollout:requeued', 'r2 rollout:requeued']);
  });

  it('archives the calls that were captured of what had begun', async () => {
    const calls = { name: 'model-calls.steps.ndjson', path: '/calls', mayBeTaken: true };
    const bench = await secondLife(
      async (dead) => {
        await dead.submit('r1');
        await (await dead.execution('r1')).hooks.agentBegins();
      },
      { prepare: ({ gateway }) => void gateway.files.set('r1', calls.path) },
    );
    await bench.empty();
    assert.deepEqual(
      bench.archive.saved.map(({ files }) => files),
      [[calls]],
    );
    assert.deepEqual(bench.gateway.calls, ['forget r1']);
  });

  it('archives the calls of what had ended, and forgets those of nobody', async () => {
    const calls = { name: 'model-calls.steps.ndjson', path: '/calls', mayBeTaken: true };
    const bench = await secondLife(
      async (dead) => {
        for (const id of ['r1', 'r2']) {
          await dead.submit(id);
          (await dead.execution(id)).succeed();
          await until('its end', async () => (await dead.state(id)) === 'success');
        }
      },
      {
        prepare: ({ gateway, archive }) => {
          for (const id of ['r1', 'r2', 'nobody']) gateway.files.set(id, calls.path);
          archive.endsOf.add('r2');
        },
      },
    );
    await bench.empty();
    await until('no calls are left', () => bench.gateway.files.size === 0);
    assert.deepEqual(
      bench.archive.saved.map(({ rolloutId, documents, files }) => [
        rolloutId,
        'outcome.json' in documents,
        files,
      ]),
      [
        ['r1', true, [calls]],
        // The earlier life has archived its end, with more than is known now.
        ['r2', false, [calls]],
      ],
    );
    assert.deepEqual(bench.gateway.calls, ['forget r1', 'forget r2', 'forget nobody']);
  });

  it('ends what had begun as a typed failure on both channels, without running it', async () => {
    const bench = await secondLife(async (dead) => {
      await dead.submit('r1');
      await (await dead.execution('r1')).hooks.agentBegins();
    });
    await bench.empty();
    assert.equal(bench.backend.executions.size, 0);
    const { outcome } = (await bench.store.rollout('r1'))!;
    assert.equal(outcome?.cause, 'ROLLOUT_INTERRUPTED');
    assert.equal(outcome.retryable, true);
    assert.deepEqual(
      bench.callbacks.bodies('r1').map(({ channel, body }) => [channel, body['status']]),
      [
        ['completion', 'failure'],
        ['grader', 'failure'],
      ],
    );
    assert.deepEqual(bench.callbacks.bodies('r1')[0]?.body['extra_fields'], {
      ...{ backend: 'hand', phase: 'agent', category: 'agent_error', timings_sec: {} },
      harbor_exception_type: 'RuntimeError',
      outcome: {
        ...{ stage: 'agent', cause: 'ROLLOUT_INTERRUPTED', verdict: null },
        ...{ trainable: false, retryable: true },
      },
    });
  });

  it('sends a fixed completion byte for byte, and a grader failure after it', async () => {
    let fixed = '';
    const bench = await secondLife(async (dead) => {
      await dead.submit('r1');
      const execution = await dead.execution('r1');
      await execution.hooks.agentBegins();
      await execution.hooks.workflowCompleted(success(null));
      fixed = dead.callbacks.enqueued[0]?.body ?? '';
    });
    await bench.empty();
    const [completion, grader, ...others] = bench.callbacks.enqueued;
    assert.deepEqual(others, []);
    assert.equal(completion?.body, fixed);
    assert.equal(completion.channel, 'completion');
    assert.equal(grader?.channel, 'grader');
    assert.match(grader.body, /"status":"failure"/);
  });

  it('resends what had ended and was not delivered, with the same keys', async () => {
    const before: string[] = [];
    const bench = await secondLife(async (dead) => {
      await dead.submit('r1');
      (await dead.execution('r1')).succeed();
      await dead.reaches('r1', 'success');
      await until('both are out', () => dead.callbacks.enqueued.length === 2);
      before.push(...dead.callbacks.enqueued.map(({ key, body }) => `${key} ${body}`));
    });
    assert.deepEqual(
      bench.callbacks.enqueued.map(({ key, body }) => `${key} ${body}`),
      before,
    );
    await bench.empty();
  });

  describe('with callbacks that are still to be delivered', () => {
    const ended = ['r1', 'r2', 'r3', 'r4', 'r5', 'r6'];
    const endAll = async (dead: SchedulerBench): Promise<void> => {
      for (const id of ended) await dead.submit(id, {}, id === 'r1' ? 'blue' : null);
      for (const id of ended) {
        (await dead.execution(id)).succeed();
        await dead.reaches(id, 'success');
      }
    };

    it('holds the places of their rollouts until they are settled', async () => {
      const bench = await secondLife(endAll, { isHeld: true });
      const { capacity, delivering, running, queued } = bench.scheduler.admission();
      assert.deepEqual([capacity.in_flight, capacity.available], [6, 0]);
      assert.deepEqual([delivering, running, queued], [6, 0, 0]);
      const refused = await bench.submit('next');
      assert.ok(refused.kind === 'refused' && refused.reason === 'full');
      const view = await bench.scheduler.inspect('r1', operator);
      assert.equal(view?.progress?.stage, 'delivering callbacks');
      const receipts = await bench.scheduler.cancel({ kind: 'prefix', prefix: 'r' }, operator);
      assert.equal(receipts.size, 0);
      bench.callbacks.release('r1');
      await until('a place is free', () => bench.scheduler.admission().capacity.available === 1);
      assert.equal((await bench.submit('next')).kind, 'accepted');
      assert.equal(await bench.state('r1'), 'success');
      (await bench.execution('next')).succeed();
      await bench.reaches('next', 'success');
      for (const id of [...ended.slice(1), 'next']) bench.callbacks.release(id);
      await bench.empty();
    });

    it('holds none whose receiver was silent for a whole round before', async () => {
      const bench = await secondLife(
        async (dead) => {
          await endAll(dead);
          const [completion, grader] = await dead.store.deliveries('r2');
          await dead.store.attempted(completion!.key, { attempts: 5, error: 'gone' });
          await dead.store.attempted(grader!.key, { attempts: 4, error: 'gone' });
          const [other] = await dead.store.deliveries('r3');
          await dead.store.attempted(other!.key, { attempts: 4, error: 'gone' });
          for (const { key } of await dead.store.deliveries('r4'))
            await dead.store.dead(key, { attempts: 5, error: 'gone' });
        },
        { isHeld: true },
      );
      assert.equal(bench.scheduler.admission().capacity.in_flight, 4);
      assert.equal((await bench.submit('next')).kind, 'accepted');
      assert.equal(bench.callbacks.bodies('r2').length, 2, 'they go out all the same');
    });

    it('lets a stop come to its end', async () => {
      const bench = await secondLife(endAll, { isHeld: true });
      await bench.stop({ hurry: fired() });
      for (const id of ended) bench.callbacks.release(id);
      await bench.scheduler.settled(60_000);
      await bench.empty();
    });
  });

  it('ends what has waited too long in the meantime at once, whatever is free', async () => {
    const bench = await secondLife(
      async (dead) => {
        await dead.submit('brief', { agent_timeout_sec: 20 });
        await dead.submit('booting');
        await dead.execution('booting');
        dead.clock.advance(5_000);
        await dead.submit('later');
      },
      { awayMs: 57_000, queueTimeoutMs: 60_000 },
    );
    await bench.execution('later');
    for (const id of ['brief', 'booting']) {
      await bench.reaches(id, 'failure');
      const { outcome, startedAt } = (await bench.store.rollout(id))!;
      assert.equal(outcome?.cause, 'QUEUE_TIMEOUT');
      assert.equal(startedAt, null);
      assert.equal(bench.callbacks.bodies(id).length, 2);
    }
    assert.deepEqual([...bench.backend.executions.keys()], ['later']);
    assert.equal((await bench.execution('later')).request.queuedMs, 57_000);
    (await bench.execution('later')).succeed();
    await bench.empty();
  });

  it('counts the time that the server was away as waiting', async () => {
    const bench = await secondLife(
      async (dead) => {
        for (const id of ['r1', 'r2', 'r3']) await dead.submit(id);
      },
      { awayMs: 50_000, queueTimeoutMs: 60_000 },
    );
    await bench.execution('r1');
    await bench.execution('r2');
    bench.clock.advance(9_000);
    await new Promise(setImmediate);
    assert.equal(await bench.state('r3'), 'queued');
    bench.clock.advance(1_000);
    await bench.reaches('r3', 'failure');
    assert.equal((await bench.store.rollout('r3'))?.outcome?.cause, 'QUEUE_TIMEOUT');
  });

  it('takes up everything although the limits are lower now', async () => {
    const clock = new ManualClock();
    const store = new MemoryRolloutStore(() => clock.now());
    const first = await SchedulerBench.started({ store, clock, maxQueueDepth: 50 });
    for (let at = 0; at < 20; at += 1) await first.submit(`r${at}`);
    const bench = new SchedulerBench({ store, clock, maxConcurrent: 1, maxQueueDepth: 1 });
    assert.deepEqual(await bench.scheduler.start(), { recovered: 20 });
    const { capacity } = bench.scheduler.admission();
    assert.deepEqual([capacity.in_flight, capacity.available, capacity.accepting], [20, 0, false]);
    bench.backend.onExecute = (execution) => execution.succeed();
    for (const execution of bench.backend.executions.values()) execution.succeed();
    await bench.empty();
  });

  it('is not kept from the others by one that cannot be taken up', async () => {
    const bench = await secondLife(async (dead) => {
      await dead.submit('r1');
      await dead.store.accept({
        ...{ id: 'broken', tenant: 'default', request: 'no JSON', digest: 'x' },
        acceptedAt: dead.clock.now(),
      });
    });
    (await bench.execution('r1')).succeed();
    await bench.reaches('r1', 'success');
    await bench.reaches('broken', 'failure');
    await bench.empty();
  });
});

describe('a shutdown', () => {
  it('lets what runs come to its end, and starts nothing more', async () => {
    const bench = await SchedulerBench.started({ maxConcurrent: 1 });
    await bench.submit('r1');
    await bench.submit('r2');
    const execution = await bench.execution('r1');
    const stopped = bench.stop({ drainMs: 60_000 });
    assert.equal(bench.scheduler.admission().isStopping, true);
    assert.equal((await bench.submit('r3')).kind, 'stopping');
    execution.succeed();
    await stopped;
    assert.equal(await bench.state('r1'), 'success');
    assert.equal(await bench.state('r2'), 'queued');
    assert.equal(bench.backend.executions.size, 1);
  });

  it('puts back what has not begun, and ends the rest as typed failures that are told', async () => {
    const bench = await SchedulerBench.started({ maxConcurrent: 3 });
    for (const id of ['booting', 'running', 'grading']) await bench.submit(id);
    await bench.execution('booting');
    await (await bench.execution('running')).hooks.agentBegins();
    const grading = await bench.execution('grading');
    await grading.hooks.agentBegins();
    await grading.hooks.workflowCompleted(success(null));
    const stopped = bench.stop({ drainMs: 10_000 });
    bench.clock.advance(10_000);
    await stopped;
    const states = await Promise.all(
      ['booting', 'running', 'grading'].map((id) => bench.state(id)),
    );
    assert.deepEqual(states, ['queued', 'failure', 'failure']);
    assert.equal((await bench.store.rollout('booting'))?.attempt, 0);
    assert.equal((await bench.store.rollout('running'))?.outcome?.cause, 'SERVER_STOPPING');
    const told = ['booting', 'running', 'grading'].map((id) =>
      bench.callbacks.bodies(id).map(({ channel, body }) => `${channel} ${String(body['status'])}`),
    );
    assert.deepEqual(told, [
      [],
      ['completion failure', 'grader failure'],
      ['completion success', 'grader failure'],
    ]);
    for (const execution of bench.backend.executions.values())
      assert.equal(execution.aborts.length, 1);
    assert.equal(bench.gateway.routes.size, 0);
  });

  it('leaves no timer for a rollout that was being accepted when it came', async () => {
    const bench = await SchedulerBench.started();
    const accepting = bench.submit('r1');
    await bench.stop({ hurry: fired() });
    assert.equal((await accepting).kind, 'accepted');
    assert.equal(await bench.state('r1'), 'queued');
    await until('all timers have ended', () => bench.clock.pauses.length === 0);
  });

  it('does not wait for the draining when it is hurried', async () => {
    const bench = await SchedulerBench.started();
    await bench.submit('r1');
    await bench.execution('r1');
    await bench.stop({ drainMs: 1e9, hurry: fired() });
    assert.equal(await bench.state('r1'), 'queued');
  });

  it('waits for nothing that does not go, when it is forced or its time is over', async () => {
    const bench = await SchedulerBench.started();
    await bench.submit('r1');
    const execution = await bench.execution('r1');
    execution.abortGate = new Promise(() => undefined);
    await bench.stop({ force: fired() });
    await until('the abort has come', () => execution.aborts.length === 1);
  });

  it('happens once, whoever asks for it', async () => {
    const bench = await SchedulerBench.started();
    const options = { drainMs: 0, abortMs: 0, hurry: fired(), force: fired() };
    assert.equal(bench.scheduler.stop(options), bench.scheduler.stop(options));
  });
});
