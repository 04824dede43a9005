/** Rows of the tables as they come from SQLite, and what they stand for. The tables are STRICT: a column has its type. */
import type { DatabaseSync, StatementSync } from 'node:sqlite';
import type { CallbackChannel } from '../../wire/rollout/callback-payloads.ts';
import type { CancelReceipt } from '../../wire/rollout/receipt.ts';
import type { RolloutOutcome } from '../../wire/rollout/rollout-outcome.ts';
import type { RolloutState } from '../../wire/rollout/rollout-state.ts';
import type {
  DeliveringRollout,
  Delivery,
  PendingDelivery,
  StoredEvent,
  StoredRollout,
} from '../rollout-store.ts';

export interface RolloutRow {
  readonly seq: number;
  readonly id: string;
  readonly tenant: string;
  readonly digest: string;
  readonly accepted_at: number;
  readonly state: RolloutState;
  readonly attempt: number;
  readonly has_agent_begun: number;
  readonly is_tombstone: number;
  readonly started_at: number | null;
  readonly completed_at: number | null;
  readonly ended_at: number | null;
  readonly outcome: string | null;
  readonly controller_report: string | null;
  /** Of the table `requests`; null = none. */
  readonly body: string | null;
}

interface DeliveryRow {
  readonly seq: number;
  readonly key: string;
  readonly rollout_id: string;
  readonly channel: CallbackChannel;
  readonly state: Delivery['state'];
  readonly attempts: number;
  readonly created_at: number;
  readonly last_attempt_at: number | null;
  readonly last_error: string | null;
  readonly url: string;
  readonly auth: string | null;
  readonly body: string;
}

interface PendingRow extends Omit<DeliveryRow, 'body'> {
  readonly body: string | null;
}

interface EventRow {
  readonly cursor: number;
  readonly rollout_id: string;
  readonly tenant: string;
  readonly type: string;
  readonly at: number;
  readonly payload: string;
}

/** Reads rows of one shape through one prepared statement. */
export class RowQuery<Row, Value> {
  readonly #statement: StatementSync;
  readonly #decode: (row: Row) => Value;

  constructor(database: DatabaseSync, sql: string, decode: (row: Row) => Value) {
    this.#statement = database.prepare(sql);
    this.#decode = decode;
  }

  all(...parameters: (string | number)[]): Value[] {
    // The statement selects the columns of `Row`, and the tables are STRICT.
    return this.#statement.all(...parameters).map((row) => this.#decode(row as Row));
  }

  first(...parameters: (string | number)[]): Value | null {
    const row = this.#statement.get(...parameters);
    return row === undefined ? null : this.#decode(row as Row);
  }
}

export function rolloutOf(row: RolloutRow): StoredRollout {
  return {
    id: row.id,
    tenant: row.tenant,
    request: row.body ?? '',
    digest: row.digest,
    acceptedAt: new Date(row.accepted_at),
    state: row.state,
    attempt: row.attempt,
    hasAgentBegun: row.has_agent_begun === 1,
    startedAt: dateOf(row.started_at),
    completedAt: dateOf(row.completed_at),
    endedAt: dateOf(row.ended_at),
    outcome: row.outcome === null ? null : (JSON.parse(row.outcome) as RolloutOutcome),
    controllerReport: row.controller_report,
    isTombstone: row.is_tombstone === 1,
  };
}

export function deliveringOf(
  row: Pick<RolloutRow, 'id' | 'tenant' | 'accepted_at' | 'state' | 'attempt'>,
): DeliveringRollout {
  const { id, tenant, accepted_at: acceptedAt, state, attempt } = row;
  return { id, tenant, acceptedAt: new Date(acceptedAt), state, attempt };
}

export function deliveryOf(row: DeliveryRow): Delivery {
  return {
    seq: row.seq,
    key: row.key,
    rolloutId: row.rollout_id,
    channel: row.channel,
    url: row.url,
    authorization: row.auth,
    body: row.body,
    state: row.state,
    attempts: row.attempts,
    createdAt: new Date(row.created_at),
    lastAttemptAt: dateOf(row.last_attempt_at),
    lastError: row.last_error,
  };
}

export function pendingOf(row: PendingRow): PendingDelivery {
  return { ...deliveryOf({ ...row, body: '' }), body: row.body };
}

export function eventOf(row: EventRow): StoredEvent {
  return {
    cursor: row.cursor,
    rolloutId: row.rollout_id,
    tenant: row.tenant,
    type: row.type,
    at: new Date(row.at),
    payload: JSON.parse(row.payload) as StoredEvent['payload'],
  };
}

export function receiptOf({ receipt }: { readonly receipt: string }): CancelReceipt {
  const parsed = JSON.parse(receipt) as Omit<CancelReceipt, 'at'> & { readonly at: string };
  return { ...parsed, at: new Date(parsed.at) };
}

function dateOf(ms: number | null): Date | null {
  return ms === null ? null : new Date(ms);
}
