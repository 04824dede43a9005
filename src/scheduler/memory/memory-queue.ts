import { FairQueue } from '../fair-queue.ts';
import type { Lease, QueueCounts, QueueEntry, RolloutQueue } from '../queue.ts';

/** The queue of one process. Leases end with the process: the store knows what was running. */
export class MemoryQueue implements RolloutQueue {
  readonly renewEveryMs = null;
  readonly #queue: FairQueue;

  constructor(weightOf: (tenant: string) => number) {
    this.#queue = new FairQueue(weightOf);
  }

  put(entry: QueueEntry): Promise<void> {
    this.#queue.push(entry);
    return Promise.resolve();
  }

  take(): Promise<Lease | null> {
    const entry = this.#queue.take();
    return Promise.resolve(entry === null ? null : this.#lease(entry));
  }

  remove(id: string): Promise<boolean> {
    return Promise.resolve(this.#queue.remove(id));
  }

  counts(tenant?: string): QueueCounts {
    return this.#queue.counts(tenant);
  }

  #lease(entry: QueueEntry): Lease {
    let isHeld = true;
    const end = (): void => {
      if (!isHeld) throw new TypeError('a lease was ended twice');
      isHeld = false;
      this.#queue.leave(entry.tenant);
    };
    return {
      entry,
      renew: () => Promise.resolve(),
      done: () => {
        end();
        return Promise.resolve();
      },
      giveBack: () => {
        end();
        this.#queue.pushFront(entry);
        return Promise.resolve();
      },
    };
  }
}
