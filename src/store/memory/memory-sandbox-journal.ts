import { RolloutError } from '../../core/errors.ts';
import { lowerId } from '../../core/ids.ts';
import type {
  DeadRun,
  RunOwner,
  SandboxEntry,
  SandboxIntent,
  SandboxJournal,
  SandboxJournalStore,
} from '../sandbox-journal.ts';

/** The journal of one run, as all parts of this process see it. */
interface RunRecord {
  readonly owner: RunOwner;
  readonly open: Map<string, SandboxEntry>;
  /** Who has it: the run that writes it, a cleaner, or nobody. */
  holder: 'run' | 'cleaner' | null;
}

/** Journals in this process: for tests, and for sandboxes that die with it anyway. A run is dead once its journal is closed with something open. */
export class MemorySandboxJournalStore implements SandboxJournalStore {
  readonly storeId = lowerId(12);
  readonly #runs = new Map<string, RunRecord>();

  async open(runId: string): Promise<SandboxJournal> {
    await Promise.resolve();
    if (this.#runs.has(runId))
      throw new RolloutError('JOURNAL_FAILED', `run ${runId} is open already`, { phase: 'config' });
    const owner = { runId, bootId: '', pid: process.pid, processStart: 0 };
    const run: RunRecord = { owner, open: new Map(), holder: 'run' };
    this.#runs.set(runId, run);
    return new MemoryJournal(run, () => this.#runs.delete(runId));
  }

  async deadRuns(): Promise<readonly DeadRun[]> {
    await Promise.resolve();
    const free = [...this.#runs].filter(([, run]) => run.holder === null).sort(byName);
    return free.map(([runId, run]) => {
      run.holder = 'cleaner';
      return new MemoryDeadRun(run, () => this.#runs.delete(runId));
    });
  }

  async liveRuns(): Promise<readonly string[]> {
    await Promise.resolve();
    return [...this.#runs]
      .filter(([, { holder }]) => holder !== null)
      .sort(byName)
      .map(([runId]) => runId);
  }
}

class MemoryJournal implements SandboxJournal {
  readonly owner: RunOwner;
  readonly #run: RunRecord;
  readonly #forget: () => void;
  #isClosed = false;

  constructor(run: RunRecord, forget: () => void) {
    this.owner = run.owner;
    this.#run = run;
    this.#forget = forget;
  }

  async intend({ name, provider, trial, intendedAt }: SandboxIntent): Promise<void> {
    await this.#writable();
    this.#run.open.set(name, { name, provider, trial, intendedAt, state: 'intended' });
  }

  async created(name: string): Promise<void> {
    await this.#writable();
    const entry = this.#run.open.get(name);
    if (entry !== undefined) this.#run.open.set(name, { ...entry, state: 'created' });
  }

  async gone(name: string): Promise<void> {
    await this.#writable();
    this.#run.open.delete(name);
  }

  async close(): Promise<void> {
    await Promise.resolve();
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#run.holder = null;
    if (this.#run.open.size === 0) this.#forget();
  }

  async #writable(): Promise<void> {
    await Promise.resolve();
    if (this.#isClosed)
      throw new RolloutError('JOURNAL_FAILED', `the journal of run ${this.owner.runId} is closed`, {
        phase: 'environment',
      });
  }
}

class MemoryDeadRun implements DeadRun {
  readonly owner: RunOwner;
  readonly damage = null;
  readonly #run: RunRecord;
  readonly #forget: () => void;

  constructor(run: RunRecord, forget: () => void) {
    this.owner = run.owner;
    this.#run = run;
    this.#forget = forget;
  }

  get open(): readonly SandboxEntry[] {
    return [...this.#run.open.values()];
  }

  async gone(name: string): Promise<void> {
    await Promise.resolve();
    this.#run.open.delete(name);
  }

  async forget(): Promise<void> {
    await Promise.resolve();
    if (this.#run.open.size > 0)
      throw new RolloutError(
        'JOURNAL_FAILED',
        `run ${this.owner.runId} still lists ${this.#run.open.size} sandboxes`,
        { phase: 'cleanup' },
      );
    this.#run.holder = null;
    this.#forget();
  }

  release(): void {
    this.#run.holder = null;
  }
}

function byName([a]: readonly [string, unknown], [b]: readonly [string, unknown]): number {
  return a < b ? -1 : a > b ? 1 : 0;
}
