/** How many generations go on in one turn of the event loop: together with their tokens about ten milliseconds of work. */
const perTurn = 16;

/** Shares the event loop among generations, first come first served, so that aborts and health checks come through whatever the load. */
export class Turns {
  readonly #waiting: (() => void)[] = [];
  #isSet = false;

  async next(): Promise<void> {
    await new Promise<void>((resolve) => {
      this.#waiting.push(resolve);
      this.#set();
    });
  }

  #set(): void {
    if (this.#isSet) return;
    this.#isSet = true;
    setImmediate(() => {
      this.#isSet = false;
      for (const resolve of this.#waiting.splice(0, perTurn)) resolve();
      if (this.#waiting.length > 0) this.#set();
    });
  }
}
