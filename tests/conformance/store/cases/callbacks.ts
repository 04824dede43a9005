import assert from 'node:assert/strict';
import {
  at,
  delivery,
  event,
  ids,
  rollout,
  startMs,
  type StoreBench,
  type StoreCase,
} from '../bench.ts';

/** An ended rollout with both callbacks pending. */
async function withCallbacks({ store }: StoreBench, id: string, tenant = 'default'): Promise<void> {
  await store.accept(rollout(id, { tenant }));
  await store.change({
    id,
    from: ['queued'],
    set: { state: 'success', endedAt: at(1) },
    deliveries: [delivery(id), delivery(id, 'grader')],
  });
}

const states = async ({ store }: StoreBench, id: string) =>
  (await store.deliveries(id)).map(({ channel, state }) => [channel, state]);

export const callbackCases: readonly StoreCase[] = [
  {
    id: 'outbox.bytes',
    title: 'a delivery keeps its bytes, key and order whatever happens to it',
    run: async (bench) => {
      const { store, clock } = bench;
      clock.nowMs = startMs + 7;
      const given = delivery('a', 'completion', {
        body: '{"text":"é \\u0000 ✓ \\ud83d"}',
        url: 'http://h/p?q=%2F&x=ü',
        authorization: null,
      });
      await store.accept(rollout('a'));
      await store.change({ id: 'a', from: ['queued'], set: {}, deliveries: [given] });
      const fresh = {
        ...given,
        seq: 1,
        state: 'pending',
        attempts: 0,
        createdAt: at(7),
        lastAttemptAt: null,
        lastError: null,
      };
      assert.deepEqual(await store.deliveries('a'), [fresh]);
      clock.nowMs = startMs + 9;
      await store.attempted(given.key, { attempts: 1, error: 'refused' });
      const tried = { ...fresh, attempts: 1, lastAttemptAt: at(9), lastError: 'refused' };
      assert.deepEqual(await store.deliveries('a'), [tried]);
      await store.dead(given.key, { attempts: 5, error: 'gone' });
      const dead = { ...tried, attempts: 5, lastError: 'gone', state: 'dead' };
      assert.deepEqual(await store.deliveries('a'), [dead]);
      const replayed = { ...dead, state: 'pending', attempts: 0 };
      assert.deepEqual(await store.replay(given.key), replayed);
      await store.delivered(given.key, { attempts: 2, controllerReport: '{"x":1}' });
      assert.deepEqual(await store.deliveries('a'), [
        { ...replayed, state: 'delivered', attempts: 2, lastError: null },
      ]);
      assert.equal((await store.rollout('a'))!.controllerReport, '{"x":1}');
    },
  },
  {
    id: 'outbox.first-bytes-win',
    title:
      'a second body for a channel is ignored, under the same key or another, before and after delivery',
    run: async (bench) => {
      const { store } = bench;
      await withCallbacks(bench, 'a');
      const again = () =>
        store.change({
          id: 'a',
          from: ['success'],
          set: {},
          deliveries: [
            delivery('a', 'completion', { body: 'second' }),
            delivery('a', 'completion', { body: 'third', key: 'another' }),
          ],
        });
      assert.equal(await again(), true);
      const first = delivery('a').body;
      const bodies = async () => (await store.deliveries('a')).map(({ body }) => body);
      assert.deepEqual(await bodies(), [first, delivery('a', 'grader').body]);
      await store.delivered('key-a-completion', { attempts: 1, controllerReport: null });
      await again();
      assert.deepEqual(await bodies(), [first, delivery('a', 'grader').body]);
      assert.deepEqual(await states(bench, 'a'), [
        ['completion', 'delivered'],
        ['grader', 'pending'],
      ]);
    },
  },
  {
    id: 'outbox.order',
    title: 'deliveries are numbered in order of creation over all rollouts',
    run: async (bench) => {
      await withCallbacks(bench, 'b');
      await withCallbacks(bench, 'a');
      const { pending } = await bench.store.recover();
      assert.deepEqual(
        pending.map(({ seq, key }) => [seq, key]),
        [
          [1, 'key-b-completion'],
          [2, 'key-b-grader'],
          [3, 'key-a-completion'],
          [4, 'key-a-grader'],
        ],
      );
    },
  },
  {
    id: 'outbox.withdraw',
    title:
      'a cancellation withdraws what is pending and what comes with it, and nothing that arrived',
    run: async (bench) => {
      const { store } = bench;
      await store.accept(rollout('a'));
      await store.change({
        id: 'a',
        from: ['queued'],
        set: { state: 'grading', completedAt: at(1) },
        deliveries: [delivery('a')],
      });
      await store.delivered('key-a-completion', { attempts: 1, controllerReport: null });
      await store.change({
        id: 'a',
        from: ['grading'],
        set: { state: 'cancelled', endedAt: at(2) },
        deliveries: [delivery('a', 'grader')],
        withdraw: true,
      });
      const expected = [
        ['completion', 'delivered'],
        ['grader', 'withdrawn'],
      ];
      assert.deepEqual(await states(bench, 'a'), expected);
      await store.attempted('key-a-grader', { attempts: 1, error: 'late' });
      await store.dead('key-a-grader', { attempts: 1, error: 'late' });
      assert.equal(await store.replay('key-a-grader'), null);
      assert.deepEqual(await states(bench, 'a'), expected);
      assert.deepEqual((await store.recover()).pending, []);
    },
  },
  {
    id: 'outbox.withdraw-dead',
    title: 'a cancellation withdraws dead letters too, which nobody can replay then',
    run: async (bench) => {
      const { store } = bench;
      await withCallbacks(bench, 'a');
      await store.dead('key-a-completion', { attempts: 1, error: 'e' });
      await store.change({ id: 'a', from: ['success'], set: {}, withdraw: true });
      assert.deepEqual(await states(bench, 'a'), [
        ['completion', 'withdrawn'],
        ['grader', 'withdrawn'],
      ]);
      assert.equal(await store.replay('key-a-completion'), null);
    },
  },
  {
    id: 'outbox.arrived-stays',
    title:
      'what arrived stays delivered, also when a failure is told late or the withdrawal came first',
    run: async (bench) => {
      const { store } = bench;
      await withCallbacks(bench, 'a');
      await store.change({ id: 'a', from: ['success'], set: {}, withdraw: true });
      await store.delivered('key-a-completion', { attempts: 1, controllerReport: null });
      await store.dead('key-a-completion', { attempts: 2, error: 'late' });
      await store.attempted('key-a-completion', { attempts: 2, error: 'late' });
      assert.equal(await store.replay('key-a-completion'), null);
      assert.deepEqual(await states(bench, 'a'), [
        ['completion', 'delivered'],
        ['grader', 'withdrawn'],
      ]);
    },
  },
  {
    id: 'outbox.dead-letters',
    title: 'dead letters come oldest first, by tenant, in pages, and leave the list by replay',
    run: async (bench) => {
      const { store } = bench;
      for (const [index, id] of ['a', 'b', 'c'].entries()) {
        await withCallbacks(bench, id, index === 1 ? 'blue' : 'red');
        for (const channel of ['completion', 'grader'])
          await store.dead(`key-${id}-${channel}`, { attempts: 5, error: 'gone' });
      }
      const keys = async (options: Partial<Parameters<typeof store.deadLetters>[0]>) =>
        (await store.deadLetters({ limit: 10, afterSeq: 0, ...options })).map(({ key }) => key);
      assert.equal((await keys({})).length, 6);
      assert.deepEqual(await keys({ limit: 2, afterSeq: 1 }), ['key-a-grader', 'key-b-completion']);
      assert.deepEqual(await keys({ tenant: 'blue' }), ['key-b-completion', 'key-b-grader']);
      assert.deepEqual(await keys({ tenant: 'red', limit: 3, afterSeq: 1 }), [
        'key-a-grader',
        'key-c-completion',
        'key-c-grader',
      ]);
      assert.equal(await store.replay('key-b-grader', 'red'), null);
      assert.equal((await store.replay('key-b-grader', 'blue'))?.state, 'pending');
      assert.equal(await store.replay('key-b-grader'), null);
      assert.equal(await store.replay('unknown'), null);
      assert.deepEqual(await keys({ tenant: 'blue' }), ['key-b-completion']);
      assert.deepEqual(
        (await store.recover()).pending.map(({ key }) => key),
        ['key-b-grader'],
      );
    },
  },
  {
    id: 'outbox.delivering',
    title: 'a restart is told of the rollouts that have ended and whose callbacks are to go out',
    run: async (bench) => {
      const { store } = bench;
      await withCallbacks(bench, 'late', 'blue');
      for (const id of ['arrived', 'dead', 'half']) await withCallbacks(bench, id, 'red');
      await store.accept(rollout('grading'));
      await store.change({
        id: 'grading',
        from: ['queued'],
        set: { state: 'grading', completedAt: at(1) },
        deliveries: [delivery('grading')],
      });
      const arrived = { attempts: 1, controllerReport: null };
      for (const key of ['key-arrived-completion', 'key-arrived-grader', 'key-half-completion'])
        await store.delivered(key, arrived);
      for (const key of ['key-dead-completion', 'key-dead-grader'])
        await store.dead(key, { attempts: 5, error: 'gone' });
      const { live, delivering } = await store.recover();
      assert.deepEqual(ids(live), ['grading']);
      const common = { acceptedAt: at(0), state: 'success', attempt: 0 };
      assert.deepEqual(delivering, [
        { id: 'late', tenant: 'blue', ...common },
        { id: 'half', tenant: 'red', ...common },
      ]);
    },
  },
  {
    id: 'outbox.unknown',
    title: 'news about a delivery that is not there changes nothing',
    run: async ({ store }) => {
      await store.delivered('x', { attempts: 1, controllerReport: '{}' });
      await store.attempted('x', { attempts: 1, error: 'e' });
      await store.dead('x', { attempts: 1, error: 'e' });
      assert.deepEqual(await store.recover(), { live: [], delivering: [], pending: [] });
    },
  },
  {
    id: 'outbox.report',
    title: 'the latest report of the controller is kept, and none does not erase it',
    run: async (bench) => {
      const { store } = bench;
      await withCallbacks(bench, 'a');
      await store.delivered('key-a-completion', { attempts: 1, controllerReport: '{"n":1}' });
      await store.delivered('key-a-grader', { attempts: 1, controllerReport: null });
      assert.equal((await store.rollout('a'))!.controllerReport, '{"n":1}');
      await store.delivered('key-a-grader', { attempts: 1, controllerReport: '{"n":2}' });
      await store.change({ id: 'a', from: ['success'], set: {}, events: [event('a')] });
      assert.equal((await store.rollout('a'))!.controllerReport, '{"n":2}');
    },
  },
];
