import { dirname } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import type { Clock } from '../../core/clock.ts';
import { attribute, RolloutError } from '../../core/errors.ts';
import type { HeldLock, LockPort } from '../../core/lock.ts';
import { makeFolderSync } from '../../core/make-folder.ts';

/** Result codes of SQLite for "somebody else has it": SQLITE_BUSY and SQLITE_LOCKED (low byte of an extended code). */
const heldElsewhere = new Set([5, 6]);

/** SQLITE_FULL. */
const diskFull = 13;

const firstPauseMs = 5;
const longestPauseMs = 100;

/**
 * Locks by exclusive transactions on empty SQLite files: the one file lock that comes with Node. The kernel frees it when the
 * process dies, however it dies, and SQLite keeps two holders inside one process apart, which a bare POSIX lock would not.
 * Nothing else may open a lock file: closing any descriptor of it would drop the POSIX lock.
 */
export class FileLocks implements LockPort {
  readonly #clock: Clock;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  tryAcquire(file: string): HeldLock | null {
    let database: DatabaseSync | null = null;
    try {
      makeFolderSync(dirname(file));
      database = new DatabaseSync(file);
      database.exec('PRAGMA busy_timeout = 0; PRAGMA locking_mode = EXCLUSIVE; BEGIN EXCLUSIVE');
      return new FileLock(database);
    } catch (error) {
      database?.close();
      if (heldElsewhere.has(sqliteCode(error))) return null;
      throw notLocked(file, error);
    }
  }

  async acquire(
    file: string,
    options: { readonly timeoutMs: number; readonly signal: AbortSignal },
  ): Promise<HeldLock> {
    options.signal.throwIfAborted();
    const endsAt = this.#clock.monotonicMs() + options.timeoutMs;
    for (let pauseMs = firstPauseMs; ; pauseMs = Math.min(pauseMs * 2, longestPauseMs)) {
      const lock = this.tryAcquire(file);
      if (lock !== null) return lock;
      const leftMs = endsAt - this.#clock.monotonicMs();
      if (leftMs <= 0) throw lockTimeout(file, options.timeoutMs);
      await this.#clock.sleep(Math.min(pauseMs, leftMs), options.signal);
    }
  }
}

class FileLock implements HeldLock {
  #database: DatabaseSync | null;

  constructor(database: DatabaseSync) {
    this.#database = database;
  }

  release(): void {
    const database = this.#database;
    this.#database = null;
    database?.close(); // rolls the transaction back, which frees the lock
  }
}

function notLocked(file: string, error: unknown): RolloutError {
  const what = `cannot lock ${file}`;
  const known = attribute(error, 'JOURNAL_FAILED', 'queue', what);
  if (known.code !== 'JOURNAL_FAILED') return known;
  if (sqliteCode(error) === diskFull)
    return new RolloutError('DISK_FULL', `${what}: no space left`, {
      phase: 'queue',
      remedy: 'Free disk space on the host, then run the job again: it resumes.',
      cause: error,
    });
  return new RolloutError('JOURNAL_FAILED', known.message, {
    phase: 'queue',
    remedy: 'Make the folder of the file writable for this user.',
    cause: error,
  });
}

function sqliteCode(error: unknown): number {
  const code = error instanceof Error && 'errcode' in error ? error.errcode : null;
  return typeof code === 'number' ? code & 0xff : 0;
}

function lockTimeout(file: string, timeoutMs: number): RolloutError {
  return new RolloutError('LOCK_TIMEOUT', `${file} was held for more than ${timeoutMs} ms`, {
    phase: 'queue',
    remedy: 'Wait for the other process that uses this folder, or end it.',
  });
}
