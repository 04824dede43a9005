import { mkdtempDisposable } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { systemClock } from '../../../src/core/clock.ts';
import { never } from '../../../src/core/linked-abort.ts';
import { silentLogger } from '../../../src/core/logger.ts';
import { FileLocks } from '../../../src/store/file/file-lock.ts';
import { MemoryRolloutStore } from '../../../src/store/memory/memory-rollout-store.ts';
import { SqliteRolloutStore } from '../../../src/store/sqlite/sqlite-rollout-store.ts';
import type { StoreAdapter } from './bench.ts';

export const memoryAdapter: StoreAdapter = {
  name: 'memory',
  open: async (now) => {
    const store = new MemoryRolloutStore(now);
    return { store, reopen: null, [Symbol.asyncDispose]: () => store.close() };
  },
};

export const sqliteAdapter: StoreAdapter = {
  name: 'sqlite',
  open: async (now) => {
    const folder = await mkdtempDisposable(join(tmpdir(), 'slipway-store-'));
    const parts = {
      clock: { ...systemClock, now },
      logger: silentLogger,
      locks: new FileLocks(systemClock),
      signal: never,
    };
    let store = await SqliteRolloutStore.open(folder.path, parts);
    return {
      store,
      reopen: async () => {
        await store.close();
        store = await SqliteRolloutStore.open(folder.path, parts);
        return store;
      },
      [Symbol.asyncDispose]: async () => {
        await store.close();
        await folder.remove();
      },
    };
  },
};
