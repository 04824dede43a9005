/**
 * The door of all rollouts: so many run at once, the others wait in order. When it is closed nobody enters, and whoever waits is turned away; those inside
 * stay. Closing is the first step of every abort.
 */
export class RolloutGate {
  readonly #limit: number;
  #closing = new AbortController();
  #inside = 0;
  #waiting: ((hasEntered: boolean) => void)[] = [];

  constructor(limit: number) {
    this.#limit = limit;
  }

  get isOpen(): boolean {
    return !this.#closing.signal.aborted;
  }

  get inside(): number {
    return this.#inside;
  }

  get waiting(): number {
    return this.#waiting.length;
  }

  /** Resolves when there is a place, which `leave` gives back; false = the gate is closed, or `signal` fired first. */
  enter(signal: AbortSignal): Promise<boolean> {
    if (!this.isOpen || signal.aborted) return Promise.resolve(false);
    if (this.#inside < this.#limit) {
      this.#inside += 1;
      return Promise.resolve(true);
    }
    return new Promise((resolve) => {
      const give = (hasEntered: boolean): void => {
        signal.removeEventListener('abort', goAway);
        resolve(hasEntered);
      };
      const goAway = (): void => {
        this.#waiting = this.#waiting.filter((each) => each !== give);
        resolve(false);
      };
      signal.addEventListener('abort', goAway, { once: true });
      this.#waiting.push(give);
    });
  }

  /** The place passes to the first who waits without being free in between. */
  leave(): void {
    const next = this.#waiting.shift();
    if (next === undefined) this.#inside -= 1;
    else next(true);
  }

  /** Fires when it closes. */
  get closing(): AbortSignal {
    return this.#closing.signal;
  }

  close(): void {
    this.#closing.abort(new Error('the gate is closed'));
    for (const turnAway of this.#waiting.splice(0)) turnAway(false);
  }

  open(): void {
    if (!this.isOpen) this.#closing = new AbortController();
  }
}
