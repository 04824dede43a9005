import { setTimeout as delay } from 'node:timers/promises';
import type { DestroyReceipt } from '../environment.ts';

/** The removal of a sandbox: calls share the one that is under way or is done, and one after a failure tries again. */
export class OneRemoval {
  #removal: Promise<DestroyReceipt> | null = null;

  /** One is under way, or done. */
  get hasBegun(): boolean {
    return this.#removal !== null;
  }

  run(remove: () => Promise<DestroyReceipt>): Promise<DestroyReceipt> {
    this.#removal ??= remove().catch((error: unknown) => {
      this.#removal = null;
      throw error;
    });
    return this.#removal;
  }
}

/** Whether a start is over, however it ended, within `ms`: one that goes on could bring the sandbox back. null = there was none. */
export async function startIsOver(start: Promise<unknown> | null, ms: number): Promise<boolean> {
  if (start === null) return true;
  const ended = start.then(
    () => true,
    () => true,
  );
  // Unreferenced: the loser of the race must not keep the process alive.
  return await Promise.race([ended, delay(ms, false, { ref: false })]);
}
