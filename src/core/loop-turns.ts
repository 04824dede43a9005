/** A turn is over when its pieces have held the event loop for so long. */
const turnMs = 5;

/** What ends something goes before what starts something: a cancellation does not wait for others to begin. */
export type TurnLane = 'start' | 'end';

/**
 * Spreads work that holds the event loop, such as starting a process, over its turns, in order of asking within a lane: a piece that takes long has
 * a turn of its own, short ones share one.
 */
export class LoopTurns {
  readonly #waiting: Readonly<Record<TurnLane, (() => void)[]>> = { start: [], end: [] };
  #isGoing = false;
  #turnEndsAt = 0;

  /** Resolves when the piece may be done; it is done in the same tick. */
  next(lane: TurnLane = 'start'): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<undefined>();
    this.#waiting[lane].push(() => resolve(undefined));
    if (!this.#isGoing) {
      this.#isGoing = true;
      setImmediate(() => this.#begin());
    }
    return promise;
  }

  #begin(): void {
    this.#turnEndsAt = performance.now() + turnMs;
    this.#go();
  }

  #go(): void {
    const start = this.#waiting.end.shift() ?? this.#waiting.start.shift();
    if (start === undefined) {
      this.#isGoing = false;
      return;
    }
    start();
    // A tick that is asked for by a microtask comes when all microtasks are done, the piece among them.
    queueMicrotask(() => process.nextTick(() => this.#goOn()));
  }

  #goOn(): void {
    if (performance.now() < this.#turnEndsAt) this.#go();
    else setImmediate(() => this.#begin());
  }
}
