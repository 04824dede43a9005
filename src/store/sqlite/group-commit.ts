import type { DatabaseSync } from 'node:sqlite';
import { faultOf } from './store-fault.ts';
import { writes, type Answer, type CallName, type StoreCalls } from './store-calls.ts';
import type { CallAnswer, CallMessage } from './worker-messages.ts';

/**
 * Runs calls in groups, each group in one transaction with one sync, in the order in which they came. When a group fails, because of one call or because
 * the disk is full, it is undone and each of its calls runs in a transaction of its own: a call fails for its own reasons only.
 */
export class GroupCommit {
  readonly #database: DatabaseSync;
  readonly #calls: StoreCalls;

  constructor(database: DatabaseSync, calls: StoreCalls) {
    this.#database = database;
    this.#calls = calls;
  }

  run(group: readonly CallMessage[]): readonly CallAnswer[] {
    if (!group.some(({ name }) => writes.has(name))) return group.map((call) => this.#single(call));
    try {
      return this.#transaction(() =>
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
        ? this.#transaction(() => this.#answer(call))
        : this.#answer(call);
      return { number, value };
    } catch (error) {
      return { number, fault: faultOf(error) };
    }
  }

  #transaction<T>(work: () => T): T {
    this.#database.exec('BEGIN IMMEDIATE');
    try {
      const value = work();
      this.#database.exec('COMMIT');
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
