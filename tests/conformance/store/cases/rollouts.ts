import assert from 'node:assert/strict';
import { at, delivery, event, ids, receipt, rollout, success, type StoreCase } from '../bench.ts';

export const rolloutCases: readonly StoreCase[] = [
  {
    id: 'accept.reads-back',
    title: 'an accepted rollout reads back whole, queued and not begun',
    run: async ({ store }) => {
      const given = rollout('a', { tenant: 'red', request: '{"é":"\\u0000 ✓ \\"quoted\\""}' });
      assert.deepEqual(await store.accept(given), { kind: 'accepted' });
      assert.deepEqual(await store.rollout('a'), {
        ...given,
        state: 'queued',
        attempt: 0,
        hasAgentBegun: false,
        startedAt: null,
        completedAt: null,
        endedAt: null,
        outcome: null,
        controllerReport: null,
        isTombstone: false,
      });
      assert.equal(await store.rollout('b'), null);
    },
  },
  {
    id: 'accept.repeated',
    title:
      'a repeated id answers same or different by its digest, in every state, and changes nothing',
    run: async ({ store }) => {
      await store.accept(rollout('a', { tenant: 'red' }));
      for (const state of ['queued', 'running', 'grading', 'success'] as const) {
        await store.change({
          id: 'a',
          from: ['queued', 'running', 'grading'],
          set: { state, attempt: 1, ...(state === 'success' ? { outcome: success } : {}) },
        });
        const before = await store.rollout('a');
        assert.deepEqual(await store.accept(rollout('a', { tenant: 'blue' })), {
          kind: 'same',
          rollout: before,
        });
        assert.deepEqual(await store.accept(rollout('a', { digest: 'other', request: '{}' })), {
          kind: 'different',
          rollout: before,
        });
        assert.deepEqual(await store.rollout('a'), before);
      }
      assert.equal((await store.events({ after: 0, limit: 10 })).events.length, 1);
    },
  },
  {
    id: 'knows',
    title:
      'an id is known from its acceptance or burial on, also after a restart, until it is pruned',
    run: async (bench) => {
      const known = () => ['a', 'b', 'c'].map((id) => bench.store.knows(id));
      assert.deepEqual(known(), [false, false, false]);
      await bench.ended(rollout('a'));
      await bench.store.bury([{ id: 'b', tenant: 'default', receipt: receipt('b') }]);
      assert.deepEqual(known(), [true, true, false]);
      await bench.reopen();
      assert.deepEqual(known(), [true, true, false]);
      await bench.store.prune({ maxAgeMs: 0, maxEnded: 0 }, at(1000));
      assert.deepEqual(known(), [false, false, false]);
      await bench.store.accept(rollout('a'));
      assert.deepEqual(known(), [true, false, false]);
    },
  },
  {
    id: 'accept.race',
    title: 'of fifty acceptances of one id at once, one is accepted',
    run: async ({ store }) => {
      const answers = await Promise.all(
        Array.from({ length: 50 }, () => store.accept(rollout('a'))),
      );
      const kinds = answers.map(({ kind }) => kind);
      assert.deepEqual(kinds, ['accepted', ...Array.from({ length: 49 }, () => 'same')]);
    },
  },
  {
    id: 'change.whole',
    title: 'a change sets what it names, and its deliveries, events and receipt come with it',
    run: async ({ store }) => {
      await store.accept(rollout('a'));
      const begin = { state: 'running', attempt: 1, startedAt: at(1) } as const;
      assert.equal(await store.change({ id: 'a', from: ['queued'], set: begin }), true);
      assert.equal(
        await store.change({
          id: 'a',
          from: ['running'],
          set: { state: 'success', hasAgentBegun: true, endedAt: at(2), outcome: success },
          deliveries: [delivery('a'), delivery('a', 'grader')],
          events: [event('a', 'rollout:ended')],
          receipt: receipt('a'),
        }),
        true,
      );
      assert.deepEqual(await store.rollout('a'), {
        ...(await store.rollout('a')),
        ...begin,
        state: 'success',
        hasAgentBegun: true,
        completedAt: null,
        endedAt: at(2),
        outcome: success,
      });
      assert.deepEqual(
        (await store.deliveries('a')).map(({ channel }) => channel),
        ['completion', 'grader'],
      );
      assert.deepEqual(await store.receipts('a'), [receipt('a')]);
      const { events } = await store.events({ after: 1, limit: 10 });
      assert.deepEqual(events, [{ ...event('a', 'rollout:ended'), cursor: 2 }]);
    },
  },
  {
    id: 'change.given-back',
    title: 'a run that is given back loses its start',
    run: async ({ store }) => {
      await store.accept(rollout('a'));
      await store.change({
        id: 'a',
        from: ['queued'],
        set: { state: 'running', attempt: 1, startedAt: at(1) },
      });
      await store.change({
        id: 'a',
        from: ['running'],
        set: { state: 'queued', attempt: 0, startedAt: null },
      });
      const { state, attempt, startedAt } = (await store.rollout('a'))!;
      assert.deepEqual(
        { state, attempt, startedAt },
        { state: 'queued', attempt: 0, startedAt: null },
      );
    },
  },
  {
    id: 'change.refused',
    title: 'a change from another state, or of an unknown id, is refused as a whole',
    run: async ({ store }) => {
      await store.accept(rollout('a'));
      const before = await store.rollout('a');
      for (const id of ['a', 'b'])
        assert.equal(
          await store.change({
            id,
            from: ['running', 'grading'],
            set: { state: 'success', outcome: success },
            deliveries: [delivery(id)],
            events: [event(id)],
            receipt: receipt(id),
            withdraw: true,
          }),
          false,
        );
      assert.deepEqual(await store.rollout('a'), before);
      assert.equal(await store.rollout('b'), null);
      for (const id of ['a', 'b']) {
        assert.deepEqual(await store.deliveries(id), []);
        assert.deepEqual(await store.receipts(id), []);
      }
      assert.equal((await store.events({ after: 0, limit: 10 })).newest, 1);
    },
  },
  {
    id: 'change.one-end-wins',
    title: 'of two ends at once the first wins, and only its callback exists',
    run: async ({ store }) => {
      await store.accept(rollout('a'));
      await store.change({ id: 'a', from: ['queued'], set: { state: 'running' } });
      const end = (state: 'success' | 'failure' | 'cancelled') =>
        store.change({
          id: 'a',
          from: ['running', 'grading'],
          set: { state, endedAt: at(1) },
          deliveries: state === 'cancelled' ? [] : [delivery('a', 'grader', { body: state })],
        });
      assert.deepEqual(await Promise.all([end('failure'), end('cancelled'), end('success')]), [
        true,
        false,
        false,
      ]);
      assert.equal((await store.rollout('a'))!.state, 'failure');
      assert.deepEqual(
        (await store.deliveries('a')).map(({ body }) => body),
        ['failure'],
      );
    },
  },
  {
    id: 'order.calls',
    title: 'calls that nobody waited for are applied in the order in which they were made',
    run: async ({ store }) => {
      const steps = ['queued', 'running', 'grading', 'success'] as const;
      const calls: Promise<unknown>[] = [];
      for (let index = 0; index < 100; index += 1) {
        const id = `r-${index}`;
        calls.push(store.accept(rollout(id)));
        for (const [step, from] of steps.slice(0, -1).entries())
          calls.push(
            store.change({
              id,
              from: [from],
              set: { state: steps[step + 1]! },
              events: [event(id, `step:${step}`)],
            }),
          );
      }
      const last = store.rollout('r-99');
      const answers = await Promise.all(calls);
      assert.equal(answers.filter((answer) => answer === false).length, 0);
      assert.equal((await last)!.state, 'success');
      const { events, newest } = await store.events({ after: 0, limit: 1000 });
      assert.equal(newest, 400);
      assert.deepEqual(
        events.map(({ cursor }) => cursor),
        Array.from({ length: 400 }, (_, index) => index + 1),
      );
      for (let index = 0; index < 100; index += 1)
        assert.deepEqual(
          events.slice(index * 4, index * 4 + 4).map(({ rolloutId, type }) => [rolloutId, type]),
          ['rollout:queued', 'step:0', 'step:1', 'step:2'].map((type) => [`r-${index}`, type]),
        );
    },
  },
  {
    id: 'bury.tombstone',
    title:
      'a buried id answers tombstone, with the receipt of its cancellation; an id that exists is left alone',
    run: async ({ store }) => {
      await store.accept(rollout('a'));
      const early = (id: string) =>
        receipt(id, { disposition: 'not_found', stage: null, confirmedGone: [] });
      await store.bury([
        { id: 'a', tenant: 'red', receipt: early('a') },
        { id: 'b', tenant: 'red', receipt: early('b') },
      ]);
      assert.equal((await store.rollout('a'))!.state, 'queued');
      assert.deepEqual(await store.receipts('a'), []);
      const buried = (await store.rollout('b'))!;
      const { state, tenant, isTombstone, endedAt, outcome } = buried;
      assert.deepEqual(
        { state, tenant, isTombstone, endedAt },
        {
          state: 'cancelled',
          tenant: 'red',
          isTombstone: true,
          endedAt: at(5),
        },
      );
      assert.equal(outcome?.status, 'cancelled');
      assert.equal(outcome.reward, null);
      assert.deepEqual(await store.receipts('b'), [early('b')]);
      for (const digest of ['', 'digest of b'])
        assert.deepEqual(await store.accept(rollout('b', { digest })), {
          kind: 'tombstone',
          rollout: buried,
        });
      await store.bury([{ id: 'b', tenant: 'blue', receipt: receipt('b') }]);
      assert.deepEqual(await store.receipts('b'), [early('b')]);
    },
  },
  {
    id: 'list.pages',
    title: 'a list is newest first, filtered, and goes on after the last row of the page before',
    run: async ({ store }) => {
      for (const [index, id] of ['x-1', 'x-2', 'y-1', 'x-3', 'é%_', 'x-4'].entries())
        await store.accept(rollout(id, { tenant: index % 2 === 0 ? 'red' : 'blue' }));
      await store.change({ id: 'x-2', from: ['queued'], set: { state: 'running' } });
      const rows: readonly [Parameters<typeof store.list>[0], readonly string[]][] = [
        [{ limit: 10 }, ['x-4', 'é%_', 'x-3', 'y-1', 'x-2', 'x-1']],
        [{ limit: 2 }, ['x-4', 'é%_']],
        [{ limit: 2, after: 'é%_' }, ['x-3', 'y-1']],
        [{ limit: 2, after: 'x-1' }, []],
        [{ limit: 2, after: 'unknown' }, []],
        [{ limit: 10, tenant: 'red' }, ['é%_', 'y-1', 'x-1']],
        [{ limit: 10, tenant: 'none' }, []],
        [{ limit: 10, prefix: 'x-' }, ['x-4', 'x-3', 'x-2', 'x-1']],
        [{ limit: 10, prefix: 'é%' }, ['é%_']],
        [{ limit: 10, prefix: '%' }, []],
        [{ limit: 10, prefix: 'X-' }, []],
        [{ limit: 10, states: ['running', 'grading'] }, ['x-2']],
        [{ limit: 10, states: [] }, []],
        [{ limit: 1, tenant: 'blue', prefix: 'x', states: ['queued'], after: 'x-4' }, ['x-3']],
      ];
      for (const [query, expected] of rows)
        assert.deepEqual(ids(await store.list(query)), expected, JSON.stringify(query));
    },
  },
  {
    id: 'recover.left',
    title:
      'a restart takes up every rollout that has not ended and every pending delivery, in order',
    needsDurability: true,
    run: async (bench) => {
      for (let index = 0; index < 20; index += 1) await bench.accept(rollout(`r-${index}`));
      await bench.store.change({
        id: 'r-3',
        from: ['queued'],
        set: { state: 'running', attempt: 1, hasAgentBegun: true, startedAt: at(1) },
      });
      for (const id of ['r-7', 'r-5'])
        await bench.store.change({
          id,
          from: ['queued'],
          set: { state: 'success', endedAt: at(2), outcome: success },
          deliveries: [delivery(id), delivery(id, 'grader')],
        });
      await bench.store.delivered('key-r-7-completion', { attempts: 1, controllerReport: null });
      await bench.store.dead('key-r-5-grader', { attempts: 5, error: 'gone' });
      const before = await bench.store.recover();
      await bench.reopen();
      const after = await bench.store.recover();
      assert.deepEqual(after, before);
      assert.deepEqual(
        ids(after.live),
        [0, 1, 2, 3, 4, 6, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19].map((n) => `r-${n}`),
      );
      assert.deepEqual(ids(after.delivering), ['r-5', 'r-7']);
      assert.equal(after.live[3]!.hasAgentBegun, true);
      assert.equal(after.live[3]!.request, '{"rollout_id":"r-3"}');
      assert.deepEqual(
        after.pending.map(({ key }) => key),
        ['key-r-7-grader', 'key-r-5-completion'],
      );
    },
  },
];
