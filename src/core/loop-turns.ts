import { setImmediate as nextTurn } from 'node:timers/promises';

/** Spreads work that holds the event loop for some milliseconds, such as starting a process: one piece per turn of the loop, in order of asking. */
export class LoopTurns {
  #last: Promise<unknown> = Promise.resolve();

  /** Resolves when the piece may be done; it is done in the same tick. */
  next(): Promise<void> {
    const turn = this.#last.then(() => nextTurn());
    this.#last = turn;
    return turn;
  }
}
