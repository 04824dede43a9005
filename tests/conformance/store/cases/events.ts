import assert from 'node:assert/strict';
import { at, event, rollout, type StoreCase } from '../bench.ts';

export const eventCases: readonly StoreCase[] = [
  {
    id: 'events.empty',
    title: 'an empty log begins at one',
    run: async ({ store }) => {
      assert.deepEqual(await store.events({ after: 0, limit: 10 }), {
        events: [],
        oldest: 1,
        newest: 0,
      });
    },
  },
  {
    id: 'events.queued',
    title: 'an acceptance is an event, with the tenant and moment of the rollout',
    run: async ({ store }) => {
      await store.accept(rollout('a', { tenant: 'red', acceptedAt: at(3) }));
      const { events } = await store.events({ after: 0, limit: 10 });
      assert.deepEqual(events, [
        {
          cursor: 1,
          rolloutId: 'a',
          tenant: 'red',
          type: 'rollout:queued',
          at: at(3),
          payload: {},
        },
      ]);
    },
  },
  {
    id: 'events.pages',
    title: 'events come after a cursor, oldest first, by tenant and by rollout',
    run: async ({ store }) => {
      const noted = [
        event('a', 't:1', 'red'),
        event('b', 't:2', 'blue'),
        event('a', 't:3', 'red'),
        event('b', 't:4', 'blue'),
        event('a', 't:5', 'blue'),
      ];
      await store.note(noted);
      const rows: readonly [Omit<Parameters<typeof store.events>[0], 'limit'>, number, number[]][] =
        [
          [{ after: 0 }, 10, [1, 2, 3, 4, 5]],
          [{ after: 2 }, 2, [3, 4]],
          [{ after: 5 }, 10, []],
          [{ after: 99 }, 10, []],
          [{ after: 1, tenant: 'red' }, 10, [3]],
          [{ after: 0, tenant: 'blue' }, 2, [2, 4]],
          [{ after: 0, rolloutId: 'a' }, 2, [1, 3]],
          [{ after: 1, rolloutId: 'a', tenant: 'red' }, 10, [3]],
          [{ after: 0, rolloutId: 'a', tenant: 'blue' }, 1, [5]],
        ];
      for (const [options, limit, cursors] of rows) {
        const page = await store.events({ ...options, limit });
        assert.deepEqual([page.oldest, page.newest], [1, 5]);
        assert.deepEqual(
          page.events,
          cursors.map((cursor) => ({ ...noted[cursor - 1]!, cursor })),
          JSON.stringify(options),
        );
      }
    },
  },
  {
    id: 'events.told',
    title:
      'a listener is called once events can be read, until it is removed, and not for refused changes',
    run: async ({ store }) => {
      let calls = 0;
      const seen: number[] = [];
      const reads: Promise<void>[] = [];
      const stop = store.onEvents(() => {
        calls += 1;
        reads.push(
          store.events({ after: 0, limit: 10 }).then(({ newest }) => void seen.push(newest)),
        );
      });
      const listener = (): void => undefined;
      store.onEvents(listener)();
      store.onEvents(listener);
      await store.accept(rollout('a'));
      assert.equal(calls, 1);
      await store.note([event('a')]);
      assert.equal(calls, 2);
      await store.change({ id: 'a', from: ['running'], set: {}, events: [event('a')] });
      await store.accept(rollout('a'));
      await store.note([]);
      await Promise.all(reads);
      assert.deepEqual([calls, seen], [2, [1, 2]]);
      stop();
      stop();
      await store.note([event('a')]);
      assert.equal(calls, 2);
    },
  },
  {
    id: 'events.no-gaps',
    title: 'cursors go on without a gap over restarts, also when every event was pruned',
    needsDurability: true,
    run: async (bench) => {
      await bench.store.note([event('a'), event('a')]);
      await bench.reopen();
      await bench.store.note([event('a')]);
      assert.equal((await bench.store.events({ after: 2, limit: 9 })).events[0]!.cursor, 3);
      await bench.store.prune({ maxAgeMs: 0, maxEnded: 0 }, at(1_000_000));
      assert.deepEqual(await bench.store.events({ after: 0, limit: 9 }), {
        events: [],
        oldest: 4,
        newest: 3,
      });
      await bench.reopen();
      await bench.store.note([event('b')]);
      const { events, oldest, newest } = await bench.store.events({ after: 3, limit: 9 });
      assert.deepEqual([events[0]!.cursor, oldest, newest], [4, 4, 4]);
    },
  },
  {
    id: 'events.many-writers',
    title: 'writers at once, some of them refused, leave no gap and no doubled number',
    run: async ({ store }) => {
      await store.accept(rollout('a'));
      await Promise.all(
        Array.from({ length: 300 }, (_, index) => {
          if (index % 3 === 0) return store.note([event('a', `note:${index}`)]);
          const from = index % 3 === 1 ? (['queued'] as const) : (['grading'] as const);
          return store.change({ id: 'a', from, set: {}, events: [event('a', `change:${index}`)] });
        }),
      );
      const { events } = await store.events({ after: 0, limit: 1000 });
      assert.deepEqual(
        events.map(({ cursor }) => cursor),
        Array.from({ length: 201 }, (_, index) => index + 1),
      );
    },
  },
];
