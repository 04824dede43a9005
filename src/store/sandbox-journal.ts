/**
 * Port: which sandboxes this machine's runs intended, made and removed. The intended name is durable before the create
 * call goes out, so that a run killed between "create sent" and "id known" leaves nothing that cannot be named.
 */
import type { RolloutError } from '../core/errors.ts';

/** Who made a sandbox. A run is live while its process holds the run's lock; boot id and start time tell a reused pid apart. */
export interface RunOwner {
  readonly runId: string;
  readonly bootId: string;
  readonly pid: number;
  /** Start time of the process in clock ticks since boot, from `/proc/PID/stat`. */
  readonly processStart: number;
}

export interface SandboxIntent {
  /** Name given to the provider: unique, deterministic, also the key for removal. */
  readonly name: string;
  /** Which adapter made it: `docker`, `local`. */
  readonly provider: string;
  readonly trial: string;
  readonly intendedAt: string;
}

export interface SandboxEntry extends SandboxIntent {
  readonly state: 'intended' | 'created' | 'gone';
}

/** What one run writes. Every call resolves only after the record is on disk. */
export interface SandboxJournal {
  readonly owner: RunOwner;
  /** Before create. */
  intend(intent: SandboxIntent): Promise<void>;
  /** After create answered. */
  created(name: string): Promise<void>;
  /** After removal was confirmed. */
  gone(name: string): Promise<void>;
  /** Ends the run: everything is gone. Removes the file when no sandbox is open; releases the lock. Idempotent. */
  close(): Promise<void>;
}

/** What a dead run left behind. */
export interface DeadRun {
  readonly owner: RunOwner;
  /** JOURNAL_FAILED naming the file when lines of the journal cannot be read; `open` then holds what the others say. */
  readonly damage: RolloutError | null;
  /** Entries that are not `gone`. */
  readonly open: readonly SandboxEntry[];
  /** Records that a removal succeeded. */
  gone(name: string): Promise<void>;
  /** Deletes the journal of this run; rejects with JOURNAL_FAILED while something is open or with `damage`. Releases the lock taken on it. */
  forget(): Promise<void>;
  /** Lets go of the run without forgetting it, so that a later start tries again. */
  release(): void;
}

/** The journals of one state folder. */
export interface SandboxJournalStore {
  /** Stable id of the state folder, written into labels: resources of another state folder are foreign. */
  readonly storeId: string;
  /** Opens the journal of this run and takes its lock. */
  open(runId: string): Promise<SandboxJournal>;
  /**
   * Runs whose lock is free, each locked for the caller until `forget` or `release`, so that two cleaners never work on one.
   * A truncated last record (the writer was killed) is ignored; worse damage is a field of its run and blocks no other.
   */
  deadRuns(): Promise<readonly DeadRun[]>;
  /** Ids of the runs that hold their lock now. */
  liveRuns(): Promise<readonly string[]>;
}
