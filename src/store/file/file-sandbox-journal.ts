/**
 * Journals as files: `<stateDir>/runs/<runId>.ndjson` and beside it `<runId>.lock`, which the run holds while it lives. A run is
 * dead when its lock is free and its process does not run: the second question guards against a lock file that somebody deleted. A run of
 * an earlier boot is therefore always dead. `<stateDir>/store-id` names the folder for labels.
 */
import { link, open, readdir, readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { boundary, RolloutError } from '../../core/errors.ts';
import { lowerId } from '../../core/ids.ts';
import type { LockPort } from '../../core/lock.ts';
import { makeFolder } from '../../core/make-folder.ts';
import type { DeadRun, SandboxJournal, SandboxJournalStore } from '../sandbox-journal.ts';
import { DeadRunJournal, readJournal } from './dead-run-journal.ts';
import type { Replay } from './journal-records.ts';
import { atJournal, removeRunFiles, RunJournal, type JournalFiles } from './run-journal.ts';
import { isRunning, ownProcess } from './run-owner.ts';
import { syncFolder } from '../sync-folder.ts';

const suffix = '.ndjson';
const safeRunId = /^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$/;

export class FileSandboxJournalStore implements SandboxJournalStore {
  readonly storeId: string;
  readonly #runsDir: string;
  readonly #locks: LockPort;

  private constructor(storeId: string, runsDir: string, locks: LockPort) {
    this.storeId = storeId;
    this.#runsDir = runsDir;
    this.#locks = locks;
  }

  /** Opens the state folder, making it and its id when they are missing. */
  static async open(stateDir: string, locks: LockPort): Promise<FileSandboxJournalStore> {
    const at = {
      code: 'JOURNAL_FAILED',
      phase: 'config',
      what: `state folder ${stateDir}`,
    } as const;
    return await boundary(at, async () => {
      const runsDir = join(stateDir, 'runs');
      await makeFolder(runsDir);
      return new FileSandboxJournalStore(await readStoreId(stateDir), runsDir, locks);
    });
  }

  async open(runId: string): Promise<SandboxJournal> {
    if (!safeRunId.test(runId)) throw new RangeError(`run id ${runId} is no file name`);
    const files = this.#files(runId);
    const lock = this.#locks.tryAcquire(files.lock);
    if (lock === null)
      throw new RolloutError('JOURNAL_FAILED', `run ${runId} is open already (${files.lock})`, {
        phase: 'config',
      });
    try {
      return await RunJournal.create(ownProcess(runId), files, lock);
    } catch (error) {
      lock.release();
      throw error;
    }
  }

  async deadRuns(): Promise<readonly DeadRun[]> {
    const dead: DeadRun[] = [];
    try {
      for (const runId of await this.#runIds()) {
        const run = await this.#takeDead(runId);
        if (run !== null) dead.push(run);
      }
    } catch (error) {
      for (const run of dead) run.release();
      throw error;
    }
    return dead;
  }

  async liveRuns(): Promise<readonly string[]> {
    const live: string[] = [];
    for (const runId of await this.#runIds()) {
      const lock = this.#locks.tryAcquire(this.#files(runId).lock);
      try {
        if (lock === null || (await this.#isAliveUnlocked(runId))) live.push(runId);
      } finally {
        lock?.release();
      }
    }
    return live;
  }

  async #takeDead(runId: string): Promise<DeadRun | null> {
    const files = this.#files(runId);
    const lock = this.#locks.tryAcquire(files.lock);
    if (lock === null) return null;
    try {
      const found = await readJournal(files);
      const isOver = found !== null && (found.isClosed || !found.owner || !isRunning(found.owner));
      if (found === null || neverBegan(found)) await removeRunFiles(files);
      else if (isOver) {
        const run = new DeadRunJournal(runId, files, { lock, replay: found });
        await run.cutTruncated();
        return run;
      }
    } catch (error) {
      lock.release();
      throw error;
    }
    lock.release();
    return null;
  }

  async #isAliveUnlocked(runId: string): Promise<boolean> {
    const found = await readJournal(this.#files(runId));
    return found?.owner != null && !found.isClosed && isRunning(found.owner);
  }

  async #runIds(): Promise<string[]> {
    const files = this.#files('*');
    const names = await atJournal(files, () => readdir(this.#runsDir));
    return names
      .filter((name) => name.endsWith(suffix))
      .map((name) => name.slice(0, -suffix.length))
      .sort();
  }

  #files(runId: string): JournalFiles {
    return {
      journal: join(this.#runsDir, `${runId}${suffix}`),
      lock: join(this.#runsDir, `${runId}.lock`),
    };
  }
}

/** The writer was killed before its first record was whole: it cannot have made a sandbox yet. */
function neverBegan(found: Replay): boolean {
  return found.owner === null && found.open.size === 0 && found.damagedLines.length === 0;
}

/** The first of several processes wins: `link` never replaces a file, and the name appears only with its whole content. */
async function readStoreId(stateDir: string): Promise<string> {
  const file = join(stateDir, 'store-id');
  const known = await readIfPresent(file);
  if (known !== null) return known;
  const draft = join(stateDir, `.store-id-${lowerId(8)}`);
  const handle = await open(draft, 'wx', 0o600);
  try {
    await handle.writeFile(`${lowerId(12)}\n`);
    await handle.sync();
    await link(draft, file);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
  } finally {
    await handle.close();
    await rm(draft, { force: true });
  }
  await syncFolder(stateDir);
  return (await readFile(file, 'utf8')).trim();
}

async function readIfPresent(file: string): Promise<string | null> {
  try {
    return (await readFile(file, 'utf8')).trim();
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null;
    throw error;
  }
}
