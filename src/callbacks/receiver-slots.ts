/**
 * How many requests run at once, to one receiver and in all. A free place goes to the receiver with the fewest requests; each serves its waiters in order.
 * One that failed to answer gets a single request at a time until it answers: the many rollouts of a dead controller do not hold the places of the others.
 */
export interface SlotLimits {
  readonly perReceiver: number;
  readonly overall: number;
}

interface Receiver {
  active: number;
  isDown: boolean;
  readonly waiting: Waiter[];
}

interface Waiter {
  readonly enter: () => void;
}

export class ReceiverSlots {
  readonly #limits: SlotLimits;
  /** Those with something active or waiting. */
  readonly #receivers = new Map<string, Receiver>();
  #active = 0;

  constructor(limits: SlotLimits) {
    this.#limits = limits;
  }

  get active(): number {
    return this.#active;
  }

  /** Runs `work` when there is a place; `isDown` of its answer says whether the receiver failed to answer. */
  async run<T extends { readonly isDown: boolean }>(
    name: string,
    signal: AbortSignal,
    work: () => Promise<T>,
  ): Promise<T> {
    signal.throwIfAborted();
    const receiver = this.#receivers.get(name) ?? { active: 0, isDown: false, waiting: [] };
    this.#receivers.set(name, receiver);
    try {
      await this.#enter(receiver, signal);
    } catch (error) {
      this.#forgetIdle(name, receiver);
      throw error;
    }
    try {
      const answer = await work();
      receiver.isDown = answer.isDown;
      return answer;
    } finally {
      receiver.active -= 1;
      this.#active -= 1;
      this.#forgetIdle(name, receiver);
      this.#fill();
    }
  }

  #forgetIdle(name: string, { active, waiting }: Receiver): void {
    if (active === 0 && waiting.length === 0) this.#receivers.delete(name);
  }

  async #enter(receiver: Receiver, signal: AbortSignal): Promise<void> {
    await new Promise<void>((resolve, reject) => {
      const waiter: Waiter = {
        enter: () => {
          signal.removeEventListener('abort', leave);
          resolve();
        },
      };
      const leave = (): void => {
        receiver.waiting.splice(receiver.waiting.indexOf(waiter), 1);
        reject(signal.reason as Error);
      };
      signal.addEventListener('abort', leave, { once: true });
      receiver.waiting.push(waiter);
      this.#fill();
    });
  }

  #fill(): void {
    while (this.#active < this.#limits.overall) {
      const next = this.#next();
      const waiter = next?.waiting.shift();
      if (next === null || waiter === undefined) return;
      next.active += 1;
      this.#active += 1;
      waiter.enter();
    }
  }

  /** Of the receivers that may have one more: the one with the fewest, and of several the first that came. */
  #next(): Receiver | null {
    let next: Receiver | null = null;
    for (const receiver of this.#receivers.values()) {
      const limit = receiver.isDown ? 1 : this.#limits.perReceiver;
      if (receiver.waiting.length === 0 || receiver.active >= limit) continue;
      if (next === null || receiver.active < next.active) next = receiver;
    }
    return next;
  }
}
