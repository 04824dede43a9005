/**
 * Port: rollouts that wait for a running place, in an order that is fair to tenants. What is taken is leased: it stays the taker's until it says that it
 * is done or gives it back. Durability is the store's; a queue in memory is filled again from the store at the start. Adapter: `memory/`.
 */

export interface QueueEntry {
  readonly id: string;
  readonly tenant: string;
}

/** One rollout, taken. */
export interface Lease {
  readonly entry: QueueEntry;
  /** Keeps it for another period; rejects when it is lost. Called every `renewEveryMs` of the queue. */
  renew(): Promise<void>;
  /** The running place is free. Ends the lease. */
  done(): Promise<void>;
  /** It did not begin and goes back to the front of its tenant's line. Ends the lease. */
  giveBack(): Promise<void>;
}

export interface QueueCounts {
  readonly queued: number;
  readonly leased: number;
}

export interface RolloutQueue {
  /** null = leases last until they end. */
  readonly renewEveryMs: number | null;
  put(entry: QueueEntry): Promise<void>;
  /** The next by fairness; null = nobody waits. */
  take(): Promise<Lease | null>;
  /** False = it does not wait here: taken, or never put. */
  remove(id: string): Promise<boolean>;
  counts(tenant?: string): QueueCounts;
}
