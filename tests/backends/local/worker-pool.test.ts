import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { RolloutWorker, WorkerKind } from '../../../src/backends/local/rollout-worker.ts';
import { WorkerPool } from '../../../src/backends/local/worker-pool.ts';
import { never } from '../../../src/core/linked-abort.ts';

/** Workers that only start and end; `most` is how many were there at once. */
function fakeKind() {
  const live = new Set<object>();
  const kind: WorkerKind = {
    noun: 'process',
    make(onGone) {
      const worker = {
        ready: new Promise<void>((resolve) => setImmediate(resolve)),
        isGone: false as boolean,
        onPrint: null,
        carryOut: () => Promise.reject(new Error('does nothing')),
        cancel: () => undefined,
        terminate: () => {
          if (live.delete(worker)) onGone();
          worker.isGone = true;
          return Promise.resolve();
        },
      } satisfies RolloutWorker;
      live.add(worker);
      counts.most = Math.max(counts.most, live.size);
      return worker;
    },
  };
  const counts = { most: 0 };
  return { kind, live, counts };
}

test('a pool whose workers each serve one rollout never has more of them than places', async () => {
  const { kind, live, counts } = fakeKind();
  const pool = new WorkerPool(kind, 4);
  await pool.warm();
  const used = { value: null, isIdle: false };
  await Promise.all(
    Array.from({ length: 40 }, () => pool.withWorker(never, () => Promise.resolve(used))),
  );
  await pool.close();
  assert.equal(live.size, 0);
  assert.ok(counts.most <= 4, `${counts.most} workers`);
});
