import type { DatabaseSync, StatementSync } from 'node:sqlite';
import type { Delivery, NewDelivery, PendingDelivery, RolloutStore } from '../rollout-store.ts';
import { deliveryOf, pendingOf, RowQuery } from './rollout-rows.ts';

/** Characters. Of a controller that is gone any number of callbacks may wait, each as long as its rollout's messages. */
const longestHandedOut = 16_384;

type Query = RowQuery<Parameters<typeof deliveryOf>[0], Delivery>;

/** An attempt to deliver, as it ended. */
export interface Attempt {
  readonly key: string;
  readonly state: 'pending' | 'delivered' | 'dead';
  readonly attempts: number;
  readonly error: string | null;
  readonly now: Date;
}

/** The outbox. Bytes, key and order of a delivery never change. */
export class DeliveryTable {
  readonly #insert: StatementSync;
  readonly #withdraw: StatementSync;
  readonly #end: StatementSync;
  readonly #arrive: StatementSync;
  readonly #replay: StatementSync;
  readonly #byKey: Query;
  readonly #ofRollout: Query;
  readonly #pending: RowQuery<Parameters<typeof pendingOf>[0], PendingDelivery>;
  readonly #dead: Query;
  readonly #deadOfTenant: Query;

  constructor(database: DatabaseSync) {
    // A conflict of the key, or of rollout and channel: the first bytes win.
    this.#insert = database.prepare(`
      INSERT INTO deliveries (key, rollout_id, channel, state, attempts, created_at, url, auth, body)
      VALUES (?, ?, ?, 'pending', 0, ?, ?, ?, ?) ON CONFLICT DO NOTHING
    `);
    this.#withdraw = database.prepare(
      `UPDATE deliveries SET state = 'withdrawn' WHERE rollout_id = ? AND state IN ('pending', 'dead')`,
    );
    this.#end = database.prepare(`
      UPDATE deliveries SET state = ?, attempts = ?, last_error = ?, last_attempt_at = ?
      WHERE key = ? AND state = 'pending'
    `);
    // What arrived has arrived, whatever was decided meanwhile.
    this.#arrive = database.prepare(`
      UPDATE deliveries SET state = 'delivered', attempts = ?, last_error = NULL, last_attempt_at = ? WHERE key = ?
    `);
    this.#replay = database.prepare(`
      UPDATE deliveries SET state = 'pending', attempts = 0 WHERE key = ?1 AND state = 'dead'
        AND (?2 IS NULL OR EXISTS (SELECT 1 FROM rollouts WHERE rollouts.id = deliveries.rollout_id AND tenant = ?2))
    `);
    const select = (condition: string): Query =>
      new RowQuery(database, `SELECT * FROM deliveries WHERE ${condition}`, deliveryOf);
    this.#byKey = select('key = ?');
    this.#ofRollout = select('rollout_id = ? ORDER BY seq');
    this.#pending = new RowQuery(
      database,
      `SELECT seq, key, rollout_id, channel, state, attempts, created_at, last_attempt_at, last_error, url, auth,
         CASE WHEN length(body) <= ${longestHandedOut} THEN body END AS body
       FROM deliveries WHERE state = 'pending' ORDER BY seq`,
      pendingOf,
    );
    this.#dead = select(`state = 'dead' AND seq > ? ORDER BY seq LIMIT ?`);
    this.#deadOfTenant = select(`
      state = 'dead' AND seq > ?
        AND EXISTS (SELECT 1 FROM rollouts WHERE rollouts.id = deliveries.rollout_id AND tenant = ?) ORDER BY seq LIMIT ?
    `);
  }

  add({ key, rolloutId, channel, url, authorization, body }: NewDelivery, now: Date): void {
    this.#insert.run(key, rolloutId, channel, now.getTime(), url, authorization, body);
  }

  withdraw(rolloutId: string): void {
    this.#withdraw.run(rolloutId);
  }

  end({ key, state, attempts, error, now }: Attempt): void {
    if (state === 'delivered') this.#arrive.run(attempts, now.getTime(), key);
    else this.#end.run(state, attempts, error, now.getTime(), key);
  }

  replay({
    key,
    tenant,
  }: {
    readonly key: string;
    readonly tenant: string | null;
  }): Delivery | null {
    return this.#replay.run(key, tenant).changes === 0 ? null : this.#byKey.first(key);
  }

  byKey(key: string): Delivery | null {
    return this.#byKey.first(key);
  }

  ofRollout(rolloutId: string): readonly Delivery[] {
    return this.#ofRollout.all(rolloutId);
  }

  pending(): readonly PendingDelivery[] {
    return this.#pending.all();
  }

  dead({
    tenant,
    limit,
    afterSeq,
  }: Parameters<RolloutStore['deadLetters']>[0]): readonly Delivery[] {
    return tenant === undefined
      ? this.#dead.all(afterSeq, limit)
      : this.#deadOfTenant.all(afterSeq, tenant, limit);
  }
}
