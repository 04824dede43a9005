import { FairQueue, type FairQueueParts, type Taken } from '../fair-queue.ts';
import type { Lease, QueueCounts, QueueEntry, RolloutQueue } from '../queue.ts';

/** Who hands leases to hosts. */
export interface LeaseGiver {
  give(rolloutId: string): string;
  end(lease: string): Promise<void>;
}

/** Waits in the order of fairness here; what is taken is work for the hosts. Leases are kept by the signs of life of who holds them. */
export class JetStreamQueue implements RolloutQueue {
  readonly renewEveryMs: number | null = null;
  readonly #queue: FairQueue;
  readonly #giver: LeaseGiver;

  constructor(parts: FairQueueParts, giver: LeaseGiver) {
    this.#queue = new FairQueue(parts);
    this.#giver = giver;
  }

  put(entry: QueueEntry): Promise<void> {
    this.#queue.push(entry);
    return Promise.resolve();
  }

  take(): Promise<Lease | null> {
    const taken = this.#queue.take();
    return Promise.resolve(taken === null ? null : this.#lease(taken));
  }

  remove(id: string): Promise<boolean> {
    return Promise.resolve(this.#queue.remove(id));
  }

  counts(tenant?: string): QueueCounts {
    return this.#queue.counts(tenant);
  }

  #lease(taken: Taken): Lease {
    const lease = this.#giver.give(taken.entry.id);
    let isHeld = true;
    const end = async (how: (taken: Taken) => void): Promise<void> => {
      if (!isHeld) throw new TypeError('a lease was ended twice');
      isHeld = false;
      how(taken);
      await this.#giver.end(lease);
    };
    return {
      entry: taken.entry,
      renew: () => Promise.resolve(),
      done: () => end((one) => this.#queue.leave(one)),
      giveBack: () => end((one) => this.#queue.putBack(one)),
    };
  }
}
