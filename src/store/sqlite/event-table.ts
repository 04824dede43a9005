import type { DatabaseSync, StatementSync } from 'node:sqlite';
import type { NewEvent, RolloutStore, StoredEvent } from '../rollout-store.ts';
import { eventOf, RowQuery } from './rollout-rows.ts';

type Options = Parameters<RolloutStore['events']>[0];
type Page = Awaited<ReturnType<RolloutStore['events']>>;
type Query = RowQuery<Parameters<typeof eventOf>[0], StoredEvent>;

/** The event log. Its numbers have no gaps because every row is inserted in a transaction that, undone, gives its number back. */
export class EventTable {
  readonly #insert: StatementSync;
  readonly #bounds: StatementSync;
  readonly #firstKept: StatementSync;
  readonly #dropBefore: StatementSync;
  readonly #all: Query;
  readonly #ofTenant: Query;
  readonly #ofRollout: Query;
  readonly #ofBoth: Query;

  constructor(database: DatabaseSync) {
    this.#insert = database.prepare(
      'INSERT INTO events (rollout_id, tenant, type, at, payload) VALUES (?, ?, ?, ?, ?)',
    );
    this.#bounds = database.prepare(`
      SELECT (SELECT min(cursor) FROM events) AS oldest,
             (SELECT seq FROM sqlite_sequence WHERE name = 'events') AS newest
    `);
    this.#firstKept = database.prepare(`
      SELECT min(cursor) AS cursor FROM (SELECT cursor, at, rollout_id FROM events ORDER BY cursor LIMIT ?) AS oldest
      WHERE at >= ? AND EXISTS (SELECT 1 FROM rollouts WHERE rollouts.id = oldest.rollout_id)
    `);
    this.#dropBefore = database.prepare(`
      DELETE FROM events WHERE cursor IN (SELECT cursor FROM events WHERE cursor < ? ORDER BY cursor LIMIT ?)
    `);
    const where = (condition: string): Query =>
      new RowQuery(
        database,
        `SELECT * FROM events WHERE cursor > ? ${condition} ORDER BY cursor LIMIT ?`,
        eventOf,
      );
    this.#all = where('');
    this.#ofTenant = where('AND tenant = ?');
    this.#ofRollout = where('AND rollout_id = ?');
    this.#ofBoth = where('AND rollout_id = ? AND tenant = ?');
  }

  add(events: readonly NewEvent[]): void {
    for (const { rolloutId, tenant, type, at, payload } of events)
      this.#insert.run(rolloutId, tenant, type, at.getTime(), JSON.stringify(payload));
  }

  page(options: Options): Page {
    const newest = this.newest();
    const oldest = Number(this.#bounds.get()?.['oldest'] ?? newest + 1);
    return { events: this.#select(options), oldest, newest };
  }

  newest(): number {
    return Number(this.#bounds.get()?.['newest'] ?? 0);
  }

  /** Drops at most `limit` of the oldest that are both not wanted any more and before every wanted one; answers how many. */
  drop({ since, limit }: { readonly since: number; readonly limit: number }): number {
    const firstKept = this.#firstKept.get(limit, since)?.['cursor'] ?? this.newest() + 1;
    return Number(this.#dropBefore.run(Number(firstKept), limit).changes);
  }

  #select({ after, limit, tenant, rolloutId }: Options): StoredEvent[] {
    if (rolloutId !== undefined && tenant !== undefined)
      return this.#ofBoth.all(after, rolloutId, tenant, limit);
    if (rolloutId !== undefined) return this.#ofRollout.all(after, rolloutId, limit);
    if (tenant !== undefined) return this.#ofTenant.all(after, tenant, limit);
    return this.#all.all(after, limit);
  }
}
