import { mkdtempDisposable } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { systemClock } from '../../../src/core/clock.ts';
import { never } from '../../../src/core/linked-abort.ts';
import { silentLogger } from '../../../src/core/logger.ts';
import { FileLocks } from '../../../src/store/file/file-lock.ts';
import {
  SqliteRolloutStore,
  type SqliteStoreOptions,
} from '../../../src/store/sqlite/sqlite-rollout-store.ts';

export const parts = {
  clock: systemClock,
  logger: silentLogger,
  locks: new FileLocks(systemClock),
  signal: never,
};

export const temporary = () => mkdtempDisposable(join(tmpdir(), 'slipway-store-'));

/** A store that closes with its scope. */
export async function openStore(
  folder: string,
  options?: SqliteStoreOptions,
): Promise<SqliteRolloutStore & AsyncDisposable> {
  const store = await SqliteRolloutStore.open(folder, parts, options);
  return Object.assign(store, { [Symbol.asyncDispose]: () => store.close() });
}
