import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { RolloutArchive } from '../../src/archive/rollout-archive.ts';
import type { Logger } from '../../src/core/logger.ts';
import { keepHouse, tidy } from '../../src/scheduler/housekeeping.ts';
import { MemoryRolloutStore } from '../../src/store/memory/memory-rollout-store.ts';
import { ManualClock } from '../fakes/manual-clock.ts';
import { until } from '../support/until.ts';

const retention = { maxAgeMs: 60_000, maxEnded: 100, archiveBytes: 5_000, everyMs: 10_000 };

async function bench() {
  const clock = new ManualClock();
  const store = new MemoryRolloutStore(() => clock.now());
  const done: string[] = [];
  const logged: string[] = [];
  const logger: Logger = { log: (level, message) => logged.push(`${level}: ${message}`) };
  const archive = {
    remove: async (id: string) => void done.push(`remove ${id}`),
    trim: async (bytes: number) => {
      done.push(`trim ${bytes}`);
      return [];
    },
  } as unknown as RolloutArchive;
  const backend = {
    forget: async (ids: readonly string[]) => void done.push(`forget ${ids.join()}`),
  };
  const gateway = { forget: async (id: string) => void done.push(`calls ${id}`) };
  for (const id of ['old', 'live']) {
    const at = { acceptedAt: clock.now() };
    await store.accept({ ...{ id, tenant: 'a', request: '{}', digest: id }, ...at });
  }
  await store.change({
    ...{ id: 'old', from: ['queued'] },
    set: { state: 'cancelled', endedAt: clock.now() },
  });
  return { clock, store, done, logged, parts: { clock, store, archive, backend, gateway, logger } };
}

describe('housekeeping', () => {
  it('removes what ended long ago from the store, the archive, the gateway and the backend, and nothing that lives', async () => {
    const { clock, store, done, parts } = await bench();
    await tidy(retention, parts);
    assert.deepEqual(done, ['trim 5000']);
    clock.advance(60_001);
    await tidy(retention, parts);
    assert.deepEqual(done, ['trim 5000', 'calls old', 'remove old', 'forget old', 'trim 5000']);
    assert.equal(await store.rollout('old'), null);
    assert.notEqual(await store.rollout('live'), null);
  });

  it('removes the others when one archive cannot be removed', async () => {
    const { clock, store, done, logged, parts } = await bench();
    const at = { acceptedAt: clock.now() };
    await store.accept({ ...{ id: 'next', tenant: 'a', request: '{}', digest: 'next' }, ...at });
    await store.change({
      ...{ id: 'next', from: ['queued'] },
      set: { state: 'cancelled', endedAt: clock.now() },
    });
    const remove = parts.archive.remove.bind(parts.archive);
    parts.archive.remove = (id) => (id === 'old' ? Promise.reject(new Error('busy')) : remove(id));
    clock.advance(60_001);
    await tidy(retention, parts);
    assert.deepEqual(done, [
      'calls old',
      'calls next',
      'remove next',
      'forget old,next',
      'trim 5000',
    ]);
    assert.deepEqual(logged, [
      'warn: the archive of a forgotten rollout could not be removed',
      'info: what is older or more than is kept was removed',
    ]);
  });

  it('trims the archive also when a backend cannot forget', async () => {
    const { clock, done, logged, parts } = await bench();
    parts.backend.forget = () => Promise.reject(new Error('busy'));
    clock.advance(60_001);
    await tidy(retention, parts);
    assert.deepEqual(done, ['calls old', 'remove old', 'trim 5000']);
    assert.match(logged[0] ?? '', /^warn: what trials of forgotten rollouts left/);
  });

  it('goes on after a failure, until it is stopped', async () => {
    const { clock, store, done, logged, parts } = await bench();
    const stop = new AbortController();
    const prune = store.prune.bind(store);
    store.prune = () => Promise.reject(new Error('not now'));
    const keeping = keepHouse(retention, parts, stop.signal);
    await until('it failed', () => logged.length === 1);
    assert.deepEqual(logged, ['warn: old rollouts could not be removed']);
    store.prune = prune;
    await until('it waits', () => clock.pauses.length === 1);
    clock.advance(10_000);
    await until('it tried again', () => done.length === 1);
    stop.abort();
    await keeping;
  });
});
