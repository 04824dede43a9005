/**
 * Folders that appear whole or not at all. An entry is filled in a hidden sibling folder and renamed into place, so that its existence
 * is its completeness; whoever fills holds the lock of its key. What a killed process left is a hidden sibling: the next
 * holder of the same lock removes it. Entries never change afterwards, because trials of other processes may be reading them.
 */
import { createHash } from 'node:crypto';
import { constants } from 'node:fs';
import { access, mkdir, readdir, rename, rm } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { RolloutError } from '../../core/errors.ts';
import { lowerId } from '../../core/ids.ts';
import type { LockPort } from '../../core/lock.ts';
import { makeFolder } from '../../core/make-folder.ts';

const unwritable = new Set(['EACCES', 'EPERM', 'EROFS', 'ENOENT', 'ENOTDIR', 'EEXIST']);

/** How long to wait for another process that fills the same entry. */
const lockTimeoutMs = 30 * 60_000;

export interface EntryKey {
  /** Folder that holds the entries and, hidden in it, their locks and unfinished folders. */
  readonly root: string;
  /** What is locked, for example the address of a repository; only its digest reaches the disk. */
  readonly key: string;
}

/** What the holder of a lock may do; valid until its work returns. */
export interface EntryWriter {
  /** A fresh empty folder under the root, removed when the lock is released. */
  scratch(): Promise<string>;
  /**
   * Makes `filled` (a folder on the same file system, for example below a scratch folder) the entry `target`.
   * An entry that exists is replaced.
   */
  place(filled: string, target: string): Promise<void>;
}

export class CacheEntries {
  readonly #locks: LockPort;

  constructor(locks: LockPort) {
    this.#locks = locks;
  }

  /** Runs `work` as the only one for this key, over all processes. Throws LOCK_TIMEOUT after 30 min. */
  async exclusively<T>(
    { root, key }: EntryKey,
    signal: AbortSignal,
    work: (writer: EntryWriter) => Promise<T>,
  ): Promise<T> {
    const id = createHash('sha256').update(key).digest('hex').slice(0, 24);
    await makeRoot(root);
    const lock = await this.#locks.acquire(join(root, '.locks', `${id}.lock`), {
      timeoutMs: lockTimeoutMs,
      signal,
    });
    try {
      await removeUnfinished(root, id);
      return await work({
        scratch: async () => {
          const folder = join(root, `${unfinishedPrefix(id)}${lowerId(8)}`);
          await mkdir(folder, { mode: 0o700 });
          return folder;
        },
        place: (filled, target) => place(filled, target, join(root, unfinishedPrefix(id))),
      });
    } finally {
      await removeUnfinished(root, id).finally(() => lock.release());
    }
  }
}

async function makeRoot(root: string): Promise<void> {
  try {
    await makeFolder(root);
    await access(root, constants.W_OK);
  } catch (error) {
    if (!unwritable.has((error as NodeJS.ErrnoException).code ?? '')) throw error;
    throw new RolloutError('CONFIG_INVALID', `the cache folder ${root} cannot be written`, {
      phase: 'resolve',
      field: 'XDG_CACHE_HOME',
      remedy: 'Set XDG_CACHE_HOME to a folder that you may write.',
      cause: error,
    });
  }
}

/** Whether the entry is there: a folder that is not empty. */
export async function hasEntry(target: string): Promise<boolean> {
  try {
    return (await readdir(target)).length > 0;
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'ENOENT' || code === 'ENOTDIR') return false;
    throw error;
  }
}

async function place(filled: string, target: string, trashPrefix: string): Promise<void> {
  await makeFolder(dirname(target));
  await rename(target, `${trashPrefix}old-${basename(target)}-${lowerId(8)}`).catch(ignoreMissing);
  await rename(filled, target);
}

function ignoreMissing(error: unknown): void {
  if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error;
}

function unfinishedPrefix(id: string): string {
  return `.unfinished-${id}-`;
}

/** Best effort: a program of a killed process may still be writing there, and the names are never used again. */
async function removeUnfinished(root: string, id: string): Promise<void> {
  const prefix = unfinishedPrefix(id);
  for (const name of await readdir(root))
    if (name.startsWith(prefix))
      await rm(join(root, name), { recursive: true, force: true, maxRetries: 3 }).catch(
        () => undefined,
      );
}
