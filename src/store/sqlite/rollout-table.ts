import type { DatabaseSync, StatementSync } from 'node:sqlite';
import { isTerminal } from '../../wire/rollout/rollout-state.ts';
import type { CancelReceipt } from '../../wire/rollout/receipt.ts';
import type { DeliveringRollout, RolloutQuery, StoredRollout } from '../rollout-store.ts';
import { deliveringOf, receiptOf, rolloutOf, RowQuery, type RolloutRow } from './rollout-rows.ts';
import { endedStates, liveStates } from './schema.ts';

/** Everything of a rollout but its body, which is read where it is wanted. */
const columns = 'rollouts.*, requests.body';
const tables = 'rollouts LEFT JOIN requests USING (seq)';

/** When it ended, as the index of ended rollouts has it. */
const endedAt = 'coalesce(ended_at, accepted_at)';

/** Rollouts with their requests and receipts. */
export class RolloutTable {
  readonly #database: DatabaseSync;
  readonly #insert: StatementSync;
  readonly #insertRequest: StatementSync;
  readonly #update: StatementSync;
  readonly #report: StatementSync;
  readonly #insertReceipt: StatementSync;
  readonly #newestSurplus: StatementSync;
  readonly #expired: StatementSync;
  readonly #removals: readonly StatementSync[];
  readonly #removeRequest: StatementSync;
  readonly #byId: RowQuery<RolloutRow, StoredRollout>;
  readonly #live: RowQuery<RolloutRow, StoredRollout>;
  readonly #delivering: RowQuery<Parameters<typeof deliveringOf>[0], DeliveringRollout>;
  readonly #receipts: RowQuery<{ readonly receipt: string }, CancelReceipt>;

  constructor(database: DatabaseSync) {
    this.#database = database;
    this.#insert = database.prepare(`
      INSERT INTO rollouts (id, tenant, digest, accepted_at, state, attempt, has_agent_begun, is_tombstone,
        started_at, completed_at, ended_at, outcome, controller_report)
      VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
    `);
    this.#insertRequest = database.prepare('INSERT INTO requests (seq, body) VALUES (?, ?)');
    this.#update = database.prepare(`
      UPDATE rollouts SET state = ?, attempt = ?, has_agent_begun = ?, started_at = ?, completed_at = ?, ended_at = ?,
        outcome = ? WHERE id = ?
    `);
    this.#report = database.prepare('UPDATE rollouts SET controller_report = ? WHERE id = ?');
    this.#insertReceipt = database.prepare(
      'INSERT INTO receipts (rollout_id, receipt) VALUES (?, ?)',
    );
    this.#byId = new RowQuery(database, `SELECT ${columns} FROM ${tables} WHERE id = ?`, rolloutOf);
    this.#live = new RowQuery(
      database,
      `SELECT ${columns} FROM ${tables} WHERE state IN ${liveStates} ORDER BY seq`,
      rolloutOf,
    );
    this.#delivering = new RowQuery(
      database,
      `SELECT id, tenant, accepted_at, state, attempt FROM rollouts
       WHERE id IN (SELECT rollout_id FROM deliveries WHERE state = 'pending')
         AND state IN ${endedStates} ORDER BY seq`,
      deliveringOf,
    );
    this.#receipts = new RowQuery(
      database,
      'SELECT receipt FROM receipts WHERE rollout_id = ? ORDER BY seq',
      receiptOf,
    );
    this.#newestSurplus = database.prepare(`
      SELECT ${endedAt} AS at, seq FROM rollouts WHERE state IN ${endedStates}
      ORDER BY ${endedAt} DESC, seq DESC LIMIT 1 OFFSET ?
    `);
    this.#expired = database.prepare(`
      SELECT seq, id FROM rollouts
      WHERE state IN ${endedStates} AND ${endedAt} <= ?1 AND (${endedAt} < ?1 OR seq <= ?2)
        AND NOT EXISTS (SELECT 1 FROM deliveries WHERE rollout_id = rollouts.id AND state = 'pending')
      ORDER BY ${endedAt}, seq LIMIT ?3
    `);
    this.#removals = [
      'DELETE FROM receipts WHERE rollout_id = ?',
      'DELETE FROM deliveries WHERE rollout_id = ?',
      'DELETE FROM rollouts WHERE id = ?',
    ].map((sql) => database.prepare(sql));
    this.#removeRequest = database.prepare('DELETE FROM requests WHERE seq = ?');
  }

  add(rollout: StoredRollout): void {
    const { id, tenant, digest, acceptedAt, request } = rollout;
    const { lastInsertRowid } = this.#insert.run(
      ...[id, tenant, digest, acceptedAt.getTime(), rollout.state, rollout.attempt],
      ...[Number(rollout.hasAgentBegun), Number(rollout.isTombstone)],
      ...[msOf(rollout.startedAt), msOf(rollout.completedAt), msOf(rollout.endedAt)],
      ...[textOf(rollout.outcome), rollout.controllerReport],
    );
    if (request !== '') this.#insertRequest.run(lastInsertRowid, request);
  }

  /** Writes what can change of a rollout. */
  update(rollout: StoredRollout): void {
    this.#update.run(
      ...[rollout.state, rollout.attempt, Number(rollout.hasAgentBegun)],
      ...[msOf(rollout.startedAt), msOf(rollout.completedAt), msOf(rollout.endedAt)],
      ...[textOf(rollout.outcome), rollout.id],
    );
  }

  report(id: string, controllerReport: string): void {
    this.#report.run(controllerReport, id);
  }

  addReceipt(id: string, receipt: CancelReceipt): void {
    this.#insertReceipt.run(id, JSON.stringify(receipt));
  }

  byId(id: string): StoredRollout | null {
    return this.#byId.first(id);
  }

  ids(): readonly string[] {
    return this.#database
      .prepare('SELECT id FROM rollouts')
      .all()
      .map((row) => String(row['id']));
  }

  live(): readonly StoredRollout[] {
    return this.#live.all();
  }

  delivering(): readonly DeliveringRollout[] {
    return this.#delivering.all();
  }

  receipts(id: string): readonly CancelReceipt[] {
    return this.#receipts.all(id);
  }

  /** Statements are made as asked: there are few shapes, and nobody waits for a page of a list. */
  list({ tenant, states, prefix, after, limit }: RolloutQuery): readonly StoredRollout[] {
    const conditions: string[] = [];
    const parameters: (string | number)[] = [];
    const where = (sql: string, ...values: string[]): void => {
      conditions.push(sql);
      parameters.push(...values);
    };
    // What lives is few: it is looked for by the index in whose words it is asked for here, not among all that a tenant ever had.
    const isLive = states?.every((state) => !isTerminal(state)) === true;
    if (isLive) where(`state IN ${liveStates}`);
    if (tenant !== undefined) where(isLive ? '+tenant = ?' : 'tenant = ?', tenant);
    if (states !== undefined) where(`state IN (${states.map(() => '?').join()})`, ...states);
    if (prefix !== undefined && prefix !== '')
      where('substr(id, 1, length(?)) = ?', prefix, prefix);
    if (after !== undefined) where('seq < (SELECT seq FROM rollouts WHERE id = ?)', after);
    const condition = conditions.length === 0 ? '' : `WHERE ${conditions.join(' AND ')}`;
    const sql = `SELECT ${columns} FROM ${tables} ${condition} ORDER BY seq DESC LIMIT ?`;
    return new RowQuery<RolloutRow, StoredRollout>(this.#database, sql, rolloutOf).all(
      ...parameters,
      limit,
    );
  }

  /** Removes at most `limit` ended rollouts that nobody waits for, with all that belongs to them; answers their ids. */
  removeExpired(options: {
    readonly since: number;
    readonly maxEnded: number;
    readonly limit: number;
  }): readonly string[] {
    const { since, maxEnded, limit } = options;
    // Too old or too many, what goes is what ended first: up to one place in that order.
    const surplus = this.#newestSurplus.get(maxEnded);
    const isOldEnough = surplus === undefined || Number(surplus['at']) < since;
    const [at, seq] = isOldEnough
      ? [since - 1, Number.MAX_SAFE_INTEGER]
      : [Number(surplus['at']), Number(surplus['seq'])];
    return this.#expired.all(at, seq, limit).map((row) => {
      const id = String(row['id']);
      this.#removeRequest.run(Number(row['seq']));
      for (const removal of this.#removals) removal.run(id);
      return id;
    });
  }
}

function msOf(date: Date | null): number | null {
  return date === null ? null : date.getTime();
}

function textOf(value: unknown): string | null {
  return value === null ? null : JSON.stringify(value);
}
