/** What durability costs by itself: one row per request in SQLite, synced, with everything that waits in one transaction. Nothing else. */
import { DatabaseSync, type StatementSync } from 'node:sqlite';

export class BareGroups implements Disposable {
  readonly #database: DatabaseSync;
  readonly #insert: StatementSync;
  #waiting: { readonly id: string; readonly body: string; readonly done: () => void }[] = [];

  constructor(file: string) {
    this.#database = new DatabaseSync(file);
    this.#database.exec('PRAGMA journal_mode = WAL');
    this.#database.exec('PRAGMA synchronous = FULL');
    this.#database.exec('CREATE TABLE requests (id TEXT PRIMARY KEY, body TEXT NOT NULL) STRICT');
    this.#insert = this.#database.prepare('INSERT INTO requests VALUES (?, ?)');
  }

  /** Durable when it resolves. */
  async insert(id: string, body: string): Promise<void> {
    await new Promise<void>((done) => {
      this.#waiting.push({ id, body, done });
      if (this.#waiting.length === 1) setImmediate(() => this.#commit());
    });
  }

  [Symbol.dispose](): void {
    this.#database.close();
  }

  #commit(): void {
    const group = this.#waiting;
    this.#waiting = [];
    this.#database.exec('BEGIN IMMEDIATE');
    for (const { id, body } of group) this.#insert.run(id, body);
    this.#database.exec('COMMIT');
    for (const { done } of group) done();
  }
}
