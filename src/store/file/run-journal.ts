import { open, rm } from 'node:fs/promises';
import { dirname } from 'node:path';
import { boundary } from '../../core/errors.ts';
import type { HeldLock } from '../../core/lock.ts';
import type { RunOwner, SandboxEntry, SandboxIntent, SandboxJournal } from '../sandbox-journal.ts';
import { AppendLog } from './append-log.ts';
import { apply, encodeRecord, type JournalRecord } from './journal-records.ts';
import { syncFolder } from '../sync-folder.ts';

export interface JournalFiles {
  readonly journal: string;
  readonly lock: string;
}

/** The journal that a live run writes. Owns the run's lock. */
export class RunJournal implements SandboxJournal {
  readonly owner: RunOwner;
  readonly #files: JournalFiles;
  readonly #lock: HeldLock;
  readonly #log: AppendLog;
  readonly #open = new Map<string, SandboxEntry>();
  #closing: Promise<void> | null = null;

  private constructor(
    owner: RunOwner,
    files: JournalFiles,
    own: { lock: HeldLock; log: AppendLog },
  ) {
    this.owner = owner;
    this.#files = files;
    this.#lock = own.lock;
    this.#log = own.log;
  }

  /** Starts the file with its `run` record; `lock` is already held and passes to the journal when this resolves. */
  static async create(owner: RunOwner, files: JournalFiles, lock: HeldLock): Promise<RunJournal> {
    return await atJournal(files, async () => {
      const log = new AppendLog(await open(files.journal, 'wx', 0o600), 0);
      try {
        await log.append(encodeRecord({ type: 'run', version: 1, ...owner }));
        await syncFolder(dirname(files.journal));
      } catch (error) {
        await log.close();
        throw error;
      }
      return new RunJournal(owner, files, { lock, log });
    });
  }

  async intend(intent: SandboxIntent): Promise<void> {
    const { name, provider, trial, intendedAt } = intent;
    await this.#record({ type: 'intended', name, provider, trial, intendedAt });
  }

  async created(name: string): Promise<void> {
    await this.#record({ type: 'created', name });
  }

  async gone(name: string): Promise<void> {
    if (this.#open.has(name)) await this.#record({ type: 'gone', name });
  }

  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  async #record(record: Exclude<JournalRecord, { type: 'run' | 'closed' }>): Promise<void> {
    await atJournal(this.#files, () => this.#log.append(encodeRecord(record)));
    apply(this.#open, record);
  }

  /** The lock goes last: until then no cleaner may read a journal that is half closed. */
  async #close(): Promise<void> {
    try {
      await atJournal(this.#files, async () => {
        if (this.#open.size > 0) await this.#log.append(encodeRecord({ type: 'closed' }));
        await this.#log.close();
        if (this.#open.size === 0) await removeRunFiles(this.#files);
      });
    } finally {
      this.#lock.release();
    }
  }
}

/** Removes the journal before its lock file: who then finds the lock free also finds no journal, and leaves it alone. */
export async function removeRunFiles(files: JournalFiles): Promise<void> {
  await rm(files.journal, { force: true });
  await rm(files.lock, { force: true });
}

/** Attributes what goes wrong with the files of a journal, naming the file. */
export function atJournal<T>(files: JournalFiles, work: () => Promise<T>): Promise<T> {
  const what = `sandbox journal ${files.journal}`;
  return boundary({ code: 'JOURNAL_FAILED', phase: 'environment', what }, work);
}
