/**
 * Port: what the rollout server must not lose. One `RolloutStore` per data folder, opened by one process at a time (STORE_LOCKED otherwise). Adapters:
 * `memory/` (for tests, and servers that may forget) and `sqlite/`; one suite (`tests/conformance/store-suite.ts`).
 *
 * Writes are atomic per call and ordered: what was called first is applied first. "Durable" means that it survives `kill -9` and a power cut; calls made
 * at the same time share one sync to disk (group commit). A full disk rejects with DISK_FULL and changes nothing; the store goes on when there is space.
 */
import type { CallbackChannel } from '../wire/rollout/callback-payloads.ts';
import type { CancelReceipt } from '../wire/rollout/receipt.ts';
import type { RolloutOutcome } from '../wire/rollout/rollout-outcome.ts';
import type { RolloutState } from '../wire/rollout/rollout-state.ts';

export interface NewRollout {
  readonly id: string;
  readonly tenant: string;
  /** Canonical JSON of the body, with the id that was minted when it had none. It holds keys of the controller: the store's files are 0600. */
  readonly request: string;
  /** SHA-256 of the canonical body as received, hexadecimal: equal digests are the same request. */
  readonly digest: string;
  readonly acceptedAt: Date;
}

export interface StoredRollout extends NewRollout {
  readonly state: RolloutState;
  /** Runs begun so far; a run that was given back before its agent began is not counted. */
  readonly attempt: number;
  /** Durable before the agent's first action. */
  readonly hasAgentBegun: boolean;
  readonly startedAt: Date | null;
  /** The completion callback's body was fixed. */
  readonly completedAt: Date | null;
  readonly endedAt: Date | null;
  /** null until ended. */
  readonly outcome: RolloutOutcome | null;
  /** Latest report of the controller about model calls (the `trajectory` value of an acknowledgement), as JSON text. */
  readonly controllerReport: string | null;
  /** It was cancelled before it came: there never was a request, and `request` and `digest` are empty. */
  readonly isTombstone: boolean;
}

export type AcceptAnswer =
  | { readonly kind: 'accepted' }
  /** The id exists with this digest (`same`), with another (`different`), or was cancelled before it came (`tombstone`). */
  | { readonly kind: 'same' | 'different' | 'tombstone'; readonly rollout: StoredRollout };

/** A callback to be delivered: bytes that never change. */
export interface NewDelivery {
  /** `Idempotency-Key`; one per rollout and channel. */
  readonly key: string;
  readonly rolloutId: string;
  readonly channel: CallbackChannel;
  readonly url: string;
  /** Value of the `Authorization` header; null = none. */
  readonly authorization: string | null;
  /** UTF-8 JSON. */
  readonly body: string;
}

export interface Delivery extends NewDelivery {
  /** Order of creation: deliveries to one URL, and the channels of one rollout, go out in this order. */
  readonly seq: number;
  readonly state: 'pending' | 'delivered' | 'dead' | 'withdrawn';
  readonly attempts: number;
  readonly createdAt: Date;
  readonly lastAttemptAt: Date | null;
  readonly lastError: string | null;
}

/** A delivery that is still to go out. Bodies that are long stay in the store until then: `deliveries` has them. */
export interface PendingDelivery extends Omit<Delivery, 'body'> {
  /** null = it is long. */
  readonly body: string | null;
}

/** What changes together, in one transaction. */
export interface RolloutChange {
  readonly id: string;
  /** The states it must be in; the change is refused as a whole (answers false) when it is in another, so that of two ends one wins. */
  readonly from: readonly RolloutState[];
  readonly set: {
    readonly state?: RolloutState;
    readonly attempt?: number;
    readonly hasAgentBegun?: boolean;
    readonly startedAt?: Date | null;
    readonly completedAt?: Date;
    readonly endedAt?: Date;
    readonly outcome?: RolloutOutcome;
  };
  /** Enqueued with the change. A key that exists is left as it is: the first bytes of a channel win. */
  readonly deliveries?: readonly NewDelivery[];
  /** Deliveries of the rollout that have not arrived are withdrawn, dead letters too (a cancelled rollout sends no callback). */
  readonly withdraw?: boolean;
  readonly events?: readonly NewEvent[];
  readonly receipt?: CancelReceipt;
  /** A restart does it again where it is lost: it survives `kill -9` when it resolves, and a power cut with the next durable write. */
  readonly isRepeatable?: true;
}

export interface NewEvent {
  readonly rolloutId: string;
  readonly tenant: string;
  /** `rollout:queued`, `rollout:started`, `rollout:requeued`, `rollout:completed`, `rollout:ended`, `callback:delivered`, `callback:dead`, … */
  readonly type: string;
  readonly at: Date;
  /** JSON object. */
  readonly payload: Readonly<Record<string, unknown>>;
}

/** `cursor` grows by one per event of a data folder, without gaps, also over restarts. */
export interface StoredEvent extends NewEvent {
  readonly cursor: number;
}

export interface RolloutQuery {
  readonly tenant?: string;
  readonly states?: readonly RolloutState[];
  readonly prefix?: string;
  /** Newest first; the id of the last row of the page before. */
  readonly after?: string;
  readonly limit: number;
}

export interface Retention {
  /** Rollouts that ended longer ago go, with their callbacks and receipts; events that are older too. */
  readonly maxAgeMs: number;
  /** Ended rollouts beyond this many go, those that ended first before others. Live ones, and those with a pending callback, never go. */
  readonly maxEnded: number;
}

/** A rollout that has ended, with callbacks that are still to go out. */
export type DeliveringRollout = Pick<
  StoredRollout,
  'id' | 'tenant' | 'acceptedAt' | 'state' | 'attempt'
>;

/** What a restart takes up. */
export interface LeftRollouts {
  /** Every rollout that has not ended, in order of acceptance. */
  readonly live: readonly StoredRollout[];
  /** Of those that have ended, the ones that `pending` is of; in order of acceptance. */
  readonly delivering: readonly DeliveringRollout[];
  /** In order. */
  readonly pending: readonly PendingDelivery[];
}

export interface RolloutStore {
  /** Durable when it resolves; the event `rollout:queued` is written with it. */
  accept(rollout: NewRollout): Promise<AcceptAnswer>;
  /** Durable when it resolves, but for {@link RolloutChange.isRepeatable}. False = refused, see {@link RolloutChange.from}. */
  change(change: RolloutChange): Promise<boolean>;
  /** Ids that were cancelled before they came: a later `accept` answers `tombstone`. An id that exists is left alone. Durable. */
  bury(
    tombstones: readonly {
      readonly id: string;
      readonly tenant: string;
      readonly receipt: CancelReceipt;
    }[],
  ): Promise<void>;
  /**
   * For stages and other news that nobody's result depends on: it may wait some milliseconds for another call's sync, and a crash meanwhile loses it.
   * An event that was read is never lost.
   */
  note(events: readonly NewEvent[]): Promise<void>;

  rollout(id: string): Promise<StoredRollout | null>;
  /** Whether `rollout` finds it, said at once and without the disk: a flood of refused requests must not wait behind anybody's sync. */
  knows(id: string): boolean;
  list(query: RolloutQuery): Promise<readonly StoredRollout[]>;
  receipts(rolloutId: string): Promise<readonly CancelReceipt[]>;
  /** Events after `cursor` (0 = from the oldest kept), at most `limit`, oldest first. `oldest` = the first cursor still kept. */
  events(options: {
    readonly after: number;
    readonly limit: number;
    readonly tenant?: string;
    readonly rolloutId?: string;
  }): Promise<{
    readonly events: readonly StoredEvent[];
    readonly oldest: number;
    readonly newest: number;
  }>;
  /** Called after events were committed; returns how to stop it. */
  onEvents(listener: () => void): () => void;

  deliveries(rolloutId: string): Promise<readonly Delivery[]>;
  /**
   * `controllerReport` (JSON text) replaces the rollout's; with one it is durable. Without, it survives `kill -9`; a power cut may bring the delivery back as
   * pending, and it goes out again with the same key.
   */
  delivered(
    key: string,
    options: { readonly attempts: number; readonly controllerReport: string | null },
  ): Promise<void>;
  /** A failed attempt; not durable at once. */
  attempted(
    key: string,
    options: { readonly attempts: number; readonly error: string },
  ): Promise<void>;
  /** No more attempts until `replay`. Durable. */
  dead(key: string, options: { readonly attempts: number; readonly error: string }): Promise<void>;
  /** Dead deliveries, oldest first. */
  deadLetters(options: {
    readonly tenant?: string;
    readonly limit: number;
    readonly afterSeq: number;
  }): Promise<readonly Delivery[]>;
  /**
   * A dead delivery becomes pending again, with the same bytes and key and its attempts counted anew; null = there is no dead delivery of this key, or its
   * rollout is not `tenant`'s. Durable.
   */
  replay(key: string, tenant?: string): Promise<Delivery | null>;

  recover(): Promise<LeftRollouts>;
  /** Events go from the oldest on, so that the log never has a hole: up to the first that is young enough and whose rollout is kept. In small steps. */
  prune(
    retention: Retention,
    now: Date,
  ): Promise<{
    readonly rollouts: number;
    readonly events: number;
    readonly removedIds: readonly string[];
  }>;
  /** A consistent copy in one file at `path`, taken while the server runs. The memory store refuses (STORE_UNSUPPORTED). */
  backup(path: string, signal: AbortSignal): Promise<void>;
  /** Writes what was accepted for writing, then closes. Idempotent. */
  close(): Promise<void>;
}
