/** Negative controls of the store's suite: a store that is broken in one way fails the cases that are about it. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { NewDelivery, RolloutStore } from '../../src/store/rollout-store.ts';
import { memoryAdapter } from './store/adapters.ts';
import type { StoreAdapter } from './store/bench.ts';
import { runStoreCase, storeCases } from './store-suite.ts';

type Break = (store: RolloutStore) => Partial<RolloutStore>;

const rows: readonly [string, readonly string[], Break][] = [
  [
    'accepts an id again',
    ['accept.repeated', 'accept.race', 'bury.tombstone'],
    (store) => ({
      accept: async (rollout) => {
        await store.accept(rollout);
        return { kind: 'accepted' };
      },
    }),
  ],
  [
    'changes from any state',
    ['change.refused', 'change.one-end-wins'],
    (store) => ({
      change: (change) =>
        store.change({
          ...change,
          from: ['queued', 'running', 'grading', 'success', 'failure', 'cancelled'],
        }),
    }),
  ],
  [
    'replaces the bytes of a channel',
    ['outbox.first-bytes-win'],
    (store) => {
      const latest = new Map<string, NewDelivery>();
      return {
        change: async (change) => {
          for (const one of change.deliveries ?? []) latest.set(one.channel, one);
          return await store.change(change);
        },
        deliveries: async (id) =>
          (await store.deliveries(id)).map((one) => ({
            ...one,
            body: latest.get(one.channel)?.body ?? one.body,
          })),
      };
    },
  ],
  [
    'refuses a change but keeps its events',
    ['change.refused', 'events.told', 'events.many-writers'],
    (store) => ({
      change: async (change) => {
        const isDone = await store.change(change);
        if (!isDone) await store.note(change.events ?? []);
        return isDone;
      },
    }),
  ],
  [
    'withdraws nothing',
    ['outbox.withdraw', 'outbox.arrived-stays'],
    (store) => ({ change: (change) => store.change({ ...change, withdraw: false }) }),
  ],
  [
    'leaves a gap in the numbers of events',
    ['events.pages', 'events.many-writers', 'order.calls'],
    (store) => ({
      events: async (options) => {
        const page = await store.events(options);
        return { ...page, events: page.events.filter(({ cursor }) => cursor !== 3) };
      },
    }),
  ],
  [
    'tells of events before they can be read',
    ['events.told'],
    (store) => {
      const listeners: (() => void)[] = [];
      return {
        accept: (rollout) => {
          for (const listener of listeners) listener();
          return store.accept(rollout);
        },
        onEvents: (listener) => {
          listeners.push(listener);
          return store.onEvents(listener);
        },
      };
    },
  ],
  [
    'forgets what was not delivered',
    ['prune.age'],
    (store) => ({
      prune: async (retention, now) => {
        const { pending } = await store.recover();
        for (const { key } of pending) await store.dead(key, { attempts: 9, error: 'pruned' });
        return await store.prune(retention, now);
      },
    }),
  ],
  [
    'puts what was called last first',
    ['order.calls'],
    (store) => ({
      accept: async (rollout) => {
        await new Promise(setImmediate);
        return await store.accept(rollout);
      },
    }),
  ],
];

for (const [name, cases, breaking] of rows)
  test(`the suite finds a store that ${name}`, async () => {
    const adapter: StoreAdapter = {
      name,
      open: async (now) => {
        const open = await memoryAdapter.open(now);
        const changes = breaking(open.store);
        const store = new Proxy(open.store, {
          get: (target, key) => {
            const value: unknown = Reflect.get(changes, key) ?? Reflect.get(target, key);
            return typeof value === 'function' ? (value.bind(target) as unknown) : value;
          },
        });
        return {
          store,
          reopen: null,
          [Symbol.asyncDispose]: () => open[Symbol.asyncDispose](),
        };
      },
    };
    for (const id of cases) {
      const storeCase = storeCases.find((one) => one.id === id)!;
      await assert.rejects(runStoreCase(storeCase, adapter), { name: 'AssertionError' }, id);
    }
  });
