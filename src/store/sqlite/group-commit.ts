import type { DatabaseSync, StatementSync } from 'node:sqlite';
import { faultOf } from './store-fault.ts';
import { needsSync, writes, type Answer, type CallName, type StoreCalls } from './store-calls.ts';
import type { CallAnswer, CallMessage } from './worker-messages.ts';

/**
 * Runs calls in groups, each group in one transaction with at most one sync, in the order in which they came. When a group fails, because of one call or because
 * the disk is full, it is undone and each of its calls runs in a transaction of its own: a call fails for its own reasons only. A group of calls none of which
 * needs it is not synced; the next sync, which is of the whole log, covers it.
 */
export class GroupCommit {
  readonly #database: DatabaseSync;
  readonly #calls: StoreCalls;
  readonly #syncLog: () => void;
  readonly #changedRows: StatementSync;
  /** How the database commits. */
  #isSyncing = true;
  /** Something was committed that no sync has covered. */
  #hasUnsynced = false;

  /** `syncLog`: syncs the log of the database beside its file. */
  constructor(database: DatabaseSync, calls: StoreCalls, syncLog: () => void) {
    this.#database = database;
    this.#calls = calls;
    this.#syncLog = syncLog;
    this.#changedRows = database.prepare('SELECT total_changes() AS count');
  }

  run(group: readonly CallMessage[]): readonly CallAnswer[] {
    if (!group.some(({ name }) => writes.has(name))) return group.map((call) => this.#single(call));
    try {
      return this.#transaction(group, () =>
        group.map((call) => ({ number: call.number, value: this.#answer(call) })),
      );
    } catch {
      return group.map((call) => this.#single(call)); // who fails again says why
    }
  }

  #single(call: CallMessage): CallAnswer {
    const { number, name } = call;
    try {
      const value = writes.has(name)
        ? this.#transaction([call], () => this.#answer(call))
        : this.#read(call);
      return { number, value };
    } catch (error) {
      return { number, fault: faultOf(error) };
    }
  }

  #read(call: CallMessage): Answer<CallName> {
    if (needsSync(call.name, call.argument)) this.#cover();
    return this.#answer(call);
  }

  #cover(): void {
    if (!this.#hasUnsynced) return;
    this.#syncLog();
    this.#hasUnsynced = false;
  }

  /** Grows with every row that is written. */
  #written(): unknown {
    return this.#changedRows.get()?.['count'];
  }

  #transaction<T>(group: readonly CallMessage[], work: () => T): T {
    const isSynced = group.some(({ name, argument }) => needsSync(name, argument));
    if (isSynced !== this.#isSyncing)
      this.#database.exec(`PRAGMA synchronous = ${isSynced ? 'FULL' : 'NORMAL'}`);
    this.#isSyncing = isSynced;
    const before = this.#written();
    this.#database.exec('BEGIN IMMEDIATE');
    try {
      const value = work();
      this.#database.exec('COMMIT');
      // A commit of nothing syncs nothing.
      if (before === this.#written()) {
        if (isSynced) this.#cover();
      } else this.#hasUnsynced = !isSynced;
      return value;
    } catch (error) {
      // SQLite has undone it by itself when the disk is full.
      if (this.#database.isTransaction) this.#database.exec('ROLLBACK');
      throw error;
    }
  }

  #answer({ name, argument }: CallMessage): Answer<CallName> {
    // A message has the argument of the call that it names: `StoreWorker.call` makes them together.
    const calls = this.#calls as unknown as Record<
      CallName,
      (argument: unknown) => Answer<CallName>
    >;
    return calls[name](argument);
  }
}
