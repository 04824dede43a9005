import assert from 'node:assert/strict';
import { isRolloutError } from '../../../../src/core/errors.ts';
import { at, delivery, ids, receipt, rollout, type StoreBench, type StoreCase } from '../bench.ts';

const day = 86_400_000;
const keepAll = { maxAgeMs: 365 * day, maxEnded: 1_000_000 };

const left = async ({ store }: StoreBench) => ids(await store.list({ limit: 1000 })).reverse();

export const retentionCases: readonly StoreCase[] = [
  {
    id: 'prune.age',
    title:
      'ended rollouts go by age with their callbacks, receipts and events; live and undelivered ones never go',
    run: async (bench) => {
      const { store } = bench;
      await store.accept(rollout('live'));
      await bench.ended(rollout('undelivered'), { deliveries: [delivery('undelivered')] });
      await bench.ended(rollout('dead'), { deliveries: [delivery('dead')] });
      await store.dead('key-dead-completion', { attempts: 5, error: 'gone' });
      await bench.ended(rollout('old'), { deliveries: [delivery('old')] });
      await store.delivered('key-old-completion', { attempts: 1, controllerReport: null });
      await store.change({ id: 'old', from: ['success'], set: {}, receipt: receipt('old') });
      await bench.ended(rollout('young'), { at: at(2 * day) });
      await store.bury([{ id: 'buried', tenant: 'default', receipt: receipt('buried') }]);
      const pruned = await store.prune({ ...keepAll, maxAgeMs: day }, at(2 * day));
      assert.deepEqual([...pruned.removedIds].sort(), ['buried', 'dead', 'old']);
      assert.equal(pruned.rollouts, 3);
      assert.deepEqual(await left(bench), ['live', 'undelivered', 'young']);
      assert.equal(await store.rollout('old'), null);
      assert.deepEqual(await store.deliveries('old'), []);
      assert.deepEqual(await store.receipts('old'), []);
      assert.deepEqual(await store.deadLetters({ limit: 9, afterSeq: 0 }), []);
      assert.equal((await store.deliveries('undelivered'))[0]!.state, 'pending');
      assert.deepEqual(await store.accept(rollout('old')), { kind: 'accepted' });
    },
  },
  {
    id: 'prune.count',
    title: 'ended rollouts beyond the number go, those that ended first before others',
    run: async (bench) => {
      for (const [id, endedAt] of [
        ['a', 5],
        ['b', 1],
        ['c', 3],
        ['d', 3],
        ['e', 9],
      ] as const)
        await bench.ended(rollout(id), { at: at(endedAt) });
      await bench.accept(rollout('live'));
      const { removedIds } = await bench.store.prune({ ...keepAll, maxEnded: 3 }, at(10));
      assert.deepEqual(removedIds, ['b', 'c']);
      assert.deepEqual(await left(bench), ['a', 'd', 'e', 'live']);
      await bench.store.prune({ ...keepAll, maxEnded: 0 }, at(10));
      assert.deepEqual(await left(bench), ['live']);
    },
  },
  {
    id: 'prune.events',
    title: 'events go from the oldest on, up to the first that is young and whose rollout is kept',
    run: async (bench) => {
      const { store } = bench;
      const note = (id: string, ms: number) =>
        store.note([
          { rolloutId: id, tenant: 'default', type: 'rollout:stage', at: at(ms), payload: {} },
        ]);
      await store.accept(rollout('live', { acceptedAt: at(0) })); // 1: too old
      await bench.ended(rollout('old', { acceptedAt: at(2 * day) }), { at: at(0) }); // 2: its rollout goes
      await note('live', 2 * day); // 3: the first to stay
      await note('old', 0); // 4: behind it
      await note('live', 2 * day);
      const { events, rollouts } = await store.prune({ ...keepAll, maxAgeMs: day }, at(2 * day));
      assert.deepEqual([events, rollouts], [2, 1]);
      const page = await store.events({ after: 0, limit: 9 });
      assert.deepEqual([page.oldest, page.newest], [3, 5]);
      assert.deepEqual(
        page.events.map(({ cursor }) => cursor),
        [3, 4, 5],
      );
    },
  },
  {
    id: 'prune.nothing',
    title: 'retention that nothing exceeds removes nothing',
    run: async (bench) => {
      await bench.ended(rollout('a'));
      assert.deepEqual(await bench.store.prune(keepAll, at(day)), {
        rollouts: 0,
        events: 0,
        removedIds: [],
      });
      assert.deepEqual(await left(bench), ['a']);
    },
  },
  {
    id: 'prune.many',
    title: 'a large retention run removes everything it should, beside writes that go on',
    run: async (bench) => {
      const { store } = bench;
      const acceptances = Array.from({ length: 700 }, (_, index) => rollout(`r-${index}`));
      await Promise.all(acceptances.map((one) => bench.ended(one)));
      const pruning = store.prune({ ...keepAll, maxEnded: 50 }, at(1));
      const accepting = store.accept(rollout('new'));
      const { rollouts, removedIds } = await pruning;
      assert.deepEqual([rollouts, new Set(removedIds).size], [650, 650]);
      assert.deepEqual(await accepting, { kind: 'accepted' });
      assert.equal((await store.list({ limit: 1000 })).length, 51);
      const { events, oldest } = await store.events({ after: 0, limit: 1000 });
      assert.equal(events[0]!.cursor, oldest);
    },
  },
  {
    id: 'close.written',
    title: 'a close writes what was called before it, and refuses what comes after',
    run: async (bench) => {
      const { store } = bench;
      const calls = [
        store.accept(rollout('a')),
        store.note([]),
        store.accept(rollout('b')),
      ] as const;
      const closing = Promise.all([store.close(), store.close()]);
      await Promise.all(calls);
      await closing;
      for (const late of [() => store.accept(rollout('c')), () => store.rollout('a')])
        await assert.rejects(late, (error) => isRolloutError(error, 'STORE_FAILED'));
      await store.close();
      await bench.reopen();
      if (bench.store !== store) assert.deepEqual(await left(bench), ['a', 'b']);
    },
  },
];
