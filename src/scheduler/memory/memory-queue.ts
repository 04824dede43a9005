import { FairQueue, type FairQueueParts, type Taken } from '../fair-queue.ts';
import type { Lease, QueueCounts, QueueEntry, RolloutQueue } from '../queue.ts';

/** The queue of one process. Leases end with the process: the store knows what was running. */
export class MemoryQueue implements RolloutQueue {
  readonly renewEveryMs: number | null = null;
  readonly #queue: FairQueue;

  constructor(parts: FairQueueParts) {
    this.#queue = new FairQueue(parts);
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
    let isHeld = true;
    const end = (how: (taken: Taken) => void): Promise<void> => {
      if (!isHeld) throw new TypeError('a lease was ended twice');
      isHeld = false;
      how(taken);
      return Promise.resolve();
    };
    return {
      entry: taken.entry,
      renew: () => Promise.resolve(),
      done: () => end((one) => this.#queue.leave(one)),
      giveBack: () => end((one) => this.#queue.putBack(one)),
    };
  }
}
