/** What the worker answers, call by call: the store's port without its promises. Every call is one step inside the transaction of its group. */
import type { DatabaseSync } from 'node:sqlite';
import {
  acceptedRollout,
  buriedRollout,
  queuedEvent,
  repeatKind,
  type Tombstone,
} from '../rollout-records.ts';
import type {
  AcceptAnswer,
  Delivery,
  LeftRollouts,
  NewEvent,
  NewRollout,
  RolloutChange,
  RolloutQuery,
  RolloutStore,
  StoredRollout,
} from '../rollout-store.ts';
import type { CancelReceipt } from '../../wire/rollout/receipt.ts';
import { DeliveryTable, type Attempt } from './delivery-table.ts';
import { EventTable } from './event-table.ts';
import { RolloutTable } from './rollout-table.ts';

export interface PruneStep {
  /** Older than this goes, in milliseconds since 1970. */
  readonly since: number;
  readonly maxEnded: number;
  readonly limit: number;
}

/** Answers, by name of the call; each takes one argument. */
export class StoreCalls {
  readonly #database: DatabaseSync;
  readonly #rollouts: RolloutTable;
  readonly #deliveries: DeliveryTable;
  readonly #events: EventTable;

  constructor(database: DatabaseSync) {
    this.#database = database;
    this.#rollouts = new RolloutTable(database);
    this.#deliveries = new DeliveryTable(database);
    this.#events = new EventTable(database);
  }

  accept(rollout: NewRollout): AcceptAnswer {
    const known = this.#rollouts.byId(rollout.id);
    if (known !== null) return { kind: repeatKind(known, rollout.digest), rollout: known };
    this.#rollouts.add(acceptedRollout(rollout));
    this.#events.add([queuedEvent(rollout)]);
    return { kind: 'accepted' };
  }

  change({ change, now }: { readonly change: RolloutChange; readonly now: Date }): boolean {
    const known = this.#rollouts.byId(change.id);
    if (known === null || !change.from.includes(known.state)) return false;
    this.#rollouts.update({ ...known, ...change.set });
    for (const delivery of change.deliveries ?? []) this.#deliveries.add(delivery, now);
    if (change.withdraw === true) this.#deliveries.withdraw(change.id);
    if (change.receipt !== undefined) this.#rollouts.addReceipt(change.id, change.receipt);
    this.#events.add(change.events ?? []);
    return true;
  }

  bury(tombstones: readonly Tombstone[]): void {
    for (const tombstone of tombstones) {
      if (this.#rollouts.byId(tombstone.id) !== null) continue;
      this.#rollouts.add(buriedRollout(tombstone));
      this.#rollouts.addReceipt(tombstone.id, tombstone.receipt);
    }
  }

  note(events: readonly NewEvent[]): void {
    this.#events.add(events);
  }

  ended(attempt: Attempt & { readonly controllerReport: string | null }): void {
    this.#deliveries.end(attempt);
    const { key, controllerReport } = attempt;
    if (controllerReport === null) return;
    const delivery = this.#deliveries.byKey(key);
    if (delivery !== null) this.#rollouts.report(delivery.rolloutId, controllerReport);
  }

  replay(which: { readonly key: string; readonly tenant: string | null }): Delivery | null {
    return this.#deliveries.replay(which);
  }

  pruneSome({ since, maxEnded, limit }: PruneStep): {
    readonly removedIds: readonly string[];
    readonly events: number;
  } {
    const removedIds = this.#rollouts.removeExpired({ since, maxEnded, limit });
    // Events go by what rollouts are left, so they come last.
    const events = removedIds.length === 0 ? this.#events.drop({ since, limit: limit * 10 }) : 0;
    return { removedIds, events };
  }

  /** Gives some free pages back to the file system; answers how many are left. */
  shrink(pages: number): number {
    this.#database.exec(`PRAGMA incremental_vacuum(${pages})`);
    return Number(this.#database.prepare('PRAGMA freelist_count').get()?.['freelist_count'] ?? 0);
  }

  rollout(id: string): StoredRollout | null {
    return this.#rollouts.byId(id);
  }

  ids(): readonly string[] {
    return this.#rollouts.ids();
  }

  list(query: RolloutQuery): readonly StoredRollout[] {
    return this.#rollouts.list(query);
  }

  receipts(rolloutId: string): readonly CancelReceipt[] {
    return this.#rollouts.receipts(rolloutId);
  }

  events(
    options: Parameters<RolloutStore['events']>[0],
  ): Awaited<ReturnType<RolloutStore['events']>> {
    return this.#events.page(options);
  }

  deliveries(rolloutId: string): readonly Delivery[] {
    return this.#deliveries.ofRollout(rolloutId);
  }

  deadLetters(options: Parameters<RolloutStore['deadLetters']>[0]): readonly Delivery[] {
    return this.#deliveries.dead(options);
  }

  recover(): LeftRollouts {
    return {
      live: this.#rollouts.live(),
      delivering: this.#rollouts.delivering(),
      pending: this.#deliveries.pending(),
    };
  }

  newestEvent(): number {
    return this.#events.newest();
  }
}

export type CallName = Exclude<keyof StoreCalls, symbol>;
export type Argument<Name extends CallName> = Parameters<StoreCalls[Name]>[0];
export type Answer<Name extends CallName> = ReturnType<StoreCalls[Name]>;

/** Calls that change the file. */
export const writes: ReadonlySet<CallName> = new Set<CallName>([
  'accept',
  'change',
  'bury',
  'note',
  'ended',
  'replay',
  'pruneSome',
  'shrink',
]);

/**
 * Whether a group with this call is synced before it is answered. What a power cut may undo is what a restart finds out or does again; and what was read of the
 * event log never changes afterwards.
 */
export function needsSync(name: CallName, argument: unknown): boolean {
  if (name === 'events') return true;
  if (name === 'note') return false;
  if (name === 'change') return (argument as Argument<'change'>).change.isRepeatable !== true;
  if (name !== 'ended') return writes.has(name);
  const { state, controllerReport } = argument as Argument<'ended'>;
  return state === 'dead' || controllerReport !== null;
}
