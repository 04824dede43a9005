import { readFile, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { boundary, isRolloutError, RolloutError } from '../../core/errors.ts';
import type { HeldLock, LockPort } from '../../core/lock.ts';
import { makeFolder } from '../../core/make-folder.ts';

/** The file of the store in a data folder. */
export function storeFile(folder: string): string {
  return join(folder, 'store.sqlite');
}

/** Makes the data folder and takes it for this process: STORE_LOCKED, naming the holder, when another has it. */
export async function holdFolder(folder: string, locks: LockPort): Promise<HeldLock> {
  const at = { code: 'STORE_FAILED', phase: 'server', what: `data folder ${folder}` } as const;
  return await boundary(at, async () => {
    await makeFolder(folder, { mode: 0o700 });
    const lock = tryLock(join(folder, 'store.lock'), locks);
    if (lock === null) throw await locked(folder);
    try {
      await writeFile(holderFile(folder), `${process.pid}\n`, { mode: 0o600 });
      return lock;
    } catch (error) {
      lock.release();
      throw error;
    }
  });
}

/** The error of {@link holdFolder} when another process has the folder, null when it is free. Nothing is changed or made. */
export async function folderInUse(folder: string, locks: LockPort): Promise<RolloutError | null> {
  const file = join(folder, 'store.lock');
  if ((await stat(file).catch(() => null)) === null) return null;
  const lock = tryLock(file, locks);
  if (lock === null) return await locked(folder);
  lock.release();
  return null;
}

/** The lock itself tells nobody who has it. */
function holderFile(folder: string): string {
  return join(folder, 'store.pid');
}

function tryLock(file: string, locks: LockPort): HeldLock | null {
  try {
    return locks.tryAcquire(file);
  } catch (error) {
    // The port names the journals of sandboxes, for which it was made.
    if (!isRolloutError(error, 'JOURNAL_FAILED')) throw error;
    throw new RolloutError('STORE_FAILED', error.message, {
      phase: 'server',
      cause: error,
      ...(error.remedy === null ? {} : { remedy: error.remedy }),
    });
  }
}

async function locked(folder: string): Promise<RolloutError> {
  const holder = await readFile(holderFile(folder), 'utf8').catch(() => '');
  const pid = Number(holder);
  const who = Number.isInteger(pid) && pid > 0 ? `process ${pid}` : 'another process';
  return new RolloutError('STORE_LOCKED', `${who} uses the data folder ${folder}`, {
    phase: 'server',
    remedy: 'Stop that server, or name another data folder.',
  });
}
