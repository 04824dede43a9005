/** Lets at most `limit` pieces of work run at once; waiters are served in order and leave the queue when their signal fires. */
export class Limiter {
  readonly #limit: number;
  #active = 0;
  readonly #waiting: { readonly enter: () => void }[] = [];

  constructor(limit: number) {
    if (!Number.isInteger(limit) || limit < 1)
      throw new RangeError(`limit must be a whole number of at least 1, not ${limit}`);
    this.#limit = limit;
  }

  get active(): number {
    return this.#active;
  }

  get waiting(): number {
    return this.#waiting.length;
  }

  async run<T>(signal: AbortSignal, work: () => Promise<T>): Promise<T> {
    await this.#acquire(signal);
    try {
      return await work();
    } finally {
      this.#release();
    }
  }

  async #acquire(signal: AbortSignal): Promise<void> {
    signal.throwIfAborted();
    if (this.#active < this.#limit) {
      this.#active += 1;
      return;
    }
    await new Promise<void>((resolve, reject) => {
      const waiter = {
        enter: (): void => {
          signal.removeEventListener('abort', leave);
          resolve();
        },
      };
      const leave = (): void => {
        this.#waiting.splice(this.#waiting.indexOf(waiter), 1);
        reject(signal.reason as Error);
      };
      signal.addEventListener('abort', leave, { once: true });
      this.#waiting.push(waiter);
    });
  }

  /** A released place passes to the first waiter without ever being free in between. */
  #release(): void {
    const next = this.#waiting.shift();
    if (next === undefined) this.#active -= 1;
    else next.enter();
  }
}
