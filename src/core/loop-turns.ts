/** What ends something goes before what starts something: a cancellation does not wait for others to begin. */
export type TurnLane = 'start' | 'end';

/** A turn is over when its pieces have held the event loop for so long. */
const turnMs = 5;
/** A start that takes less is none to recover from. */
const shortMs = 1;
const longestPauseMs = 100;

/**
 * Spreads work that holds the event loop, such as starting a process, over its turns, in order of asking within a lane: a piece that takes long has
 * a turn of its own, short ones share one. After a start the next one waits for as long as it took, so that starts never take more than half of the
 * time: what else goes on in the process, in many small steps, comes through between them.
 */
export class LoopTurns {
  readonly #waiting: Readonly<Record<TurnLane, (() => void)[]>> = { start: [], end: [] };
  #isGoing = false;
  #isPausing = false;
  #turnEndsAt = 0;
  #startsAgainAt = 0;

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
    const since = performance.now();
    const { start, end } = this.#waiting;
    const ending = end.shift();
    const piece = ending ?? (since < this.#startsAgainAt ? undefined : start.shift());
    if (piece === undefined) {
      this.#isGoing = false;
      if (start.length > 0) this.#pause(this.#startsAgainAt - since);
      return;
    }
    piece();
    const lane = ending === undefined ? 'start' : 'end';
    // A tick that is asked for by a microtask comes when all microtasks are done, the piece among them.
    queueMicrotask(() => process.nextTick(() => this.#goOn(lane, since)));
  }

  #goOn(lane: TurnLane, since: number): void {
    const now = performance.now();
    const tookMs = now - since;
    if (lane === 'start' && tookMs > shortMs)
      this.#startsAgainAt = now + Math.min(tookMs, longestPauseMs);
    if (now < this.#turnEndsAt) this.#go();
    else setImmediate(() => this.#begin());
  }

  #pause(ms: number): void {
    if (this.#isPausing) return;
    this.#isPausing = true;
    setTimeout(() => {
      this.#isPausing = false;
      if (this.#isGoing) return;
      this.#isGoing = true;
      this.#begin();
    }, ms);
  }
}
