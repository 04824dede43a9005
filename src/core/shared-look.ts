import { setImmediate as nextTurn } from 'node:timers/promises';

/**
 * One look at something costly for all who ask for it at a time. An answer always comes from a look that began after it was asked for: it is as
 * good a proof as a look of one's own.
 */
export class SharedLook<T> {
  readonly #look: () => Promise<T>;
  #running: Promise<unknown> = Promise.resolve();
  #next: Promise<T> | null = null;

  /** @param look Begins when it is called. */
  constructor(look: () => Promise<T>) {
    this.#look = look;
  }

  fresh(): Promise<T> {
    this.#next ??= this.#afterRunning();
    return this.#next;
  }

  async #afterRunning(): Promise<T> {
    await this.#running;
    await nextTurn(); // those who ask in one turn of the event loop share a look
    this.#next = null;
    const look = this.#look();
    this.#running = look.catch(() => undefined);
    return await look;
  }
}
