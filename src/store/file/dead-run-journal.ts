import { open, readFile } from 'node:fs/promises';
import { RolloutError } from '../../core/errors.ts';
import type { HeldLock } from '../../core/lock.ts';
import type { DeadRun, RunOwner, SandboxEntry } from '../sandbox-journal.ts';
import { AppendLog } from './append-log.ts';
import { apply, encodeRecord, replay, type Replay } from './journal-records.ts';
import { atJournal, removeRunFiles, type JournalFiles } from './run-journal.ts';

/** The journal of a run whose process is gone, held by the cleaner that reads it. */
export class DeadRunJournal implements DeadRun {
  readonly owner: RunOwner;
  readonly damage: RolloutError | null;
  readonly #files: JournalFiles;
  readonly #lock: HeldLock;
  readonly #open: Map<string, SandboxEntry>;
  readonly #wholeBytes: number;
  /** Each record is written at the end that the one before made. */
  #lastWrite: Promise<void> = Promise.resolve();

  constructor(runId: string, files: JournalFiles, found: { lock: HeldLock; replay: Replay }) {
    const { owner, open: entries, damagedLines, wholeBytes } = found.replay;
    this.owner = owner ?? { runId, bootId: '', pid: 0, processStart: 0 };
    this.damage = damagedLines.length === 0 ? null : damaged(files.journal, damagedLines);
    this.#files = files;
    this.#lock = found.lock;
    this.#open = new Map(entries);
    this.#wholeBytes = wholeBytes;
  }

  get open(): readonly SandboxEntry[] {
    return [...this.#open.values()];
  }

  async gone(name: string): Promise<void> {
    const write = this.#lastWrite.then(() => this.#writeGone(name));
    this.#lastWrite = write.catch(() => undefined);
    await write;
  }

  async #writeGone(name: string): Promise<void> {
    if (!this.#open.has(name)) return;
    await atJournal(this.#files, async () => {
      const file = await open(this.#files.journal, 'r+');
      const log = new AppendLog(file, (await file.stat()).size);
      try {
        await log.append(encodeRecord({ type: 'gone', name }));
      } finally {
        await log.close();
      }
    });
    apply(this.#open, { type: 'gone', name });
  }

  /** A truncated last line is cut off first, or the next record would make it a damaged one in the middle. */
  async cutTruncated(): Promise<void> {
    await atJournal(this.#files, async () => {
      const file = await open(this.#files.journal, 'r+');
      try {
        if ((await file.stat()).size > this.#wholeBytes) await file.truncate(this.#wholeBytes);
      } finally {
        await file.close();
      }
    });
  }

  async forget(): Promise<void> {
    if (this.damage !== null) throw this.damage;
    if (this.#open.size > 0)
      throw new RolloutError(
        'JOURNAL_FAILED',
        `${this.#files.journal} still lists ${this.#open.size} sandboxes`,
        { phase: 'cleanup' },
      );
    try {
      await atJournal(this.#files, () => removeRunFiles(this.#files));
    } finally {
      this.#lock.release();
    }
  }

  release(): void {
    this.#lock.release();
  }
}

/** Reads a journal; null when another cleaner has removed it meanwhile. */
export async function readJournal(files: JournalFiles): Promise<Replay | null> {
  return await atJournal(files, async () => {
    try {
      return replay(await readFile(files.journal, 'utf8'));
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null;
      throw error;
    }
  });
}

function damaged(file: string, lines: readonly number[]): RolloutError {
  const where = lines.length === 1 ? `line ${lines.join()}` : `${lines.length} lines`;
  return new RolloutError('JOURNAL_FAILED', `${file}: ${where} cannot be read`, {
    phase: 'cleanup',
    field: file,
    remedy: `Look for sandboxes of this run with 'slipway cleanup', then delete the file.`,
  });
}
