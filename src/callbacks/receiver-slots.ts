/**
 * How many requests run at once, to one receiver and in all. Receivers take turns, each serves its waiters in order. One that failed to answer gets a single
 * request at a time until it answers: the many rollouts of a dead controller do not hold the places of the others.
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
  /** Those with something active or waiting; the next to be served comes first. */
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
    for (let served = true; served && this.#active < this.#limits.overall;) {
      served = false;
      for (const [name, receiver] of [...this.#receivers]) {
        if (this.#active >= this.#limits.overall) return;
        const limit = receiver.isDown ? 1 : this.#limits.perReceiver;
        if (receiver.active >= limit) continue;
        const next = receiver.waiting.shift();
        if (next === undefined) continue;
        receiver.active += 1;
        this.#active += 1;
        served = true;
        this.#receivers.delete(name);
        this.#receivers.set(name, receiver);
        next.enter();
      }
    }
  }
}
