import { LinkedAbort } from '../../core/linked-abort.ts';
import type { LoopTurns } from '../../core/loop-turns.ts';
import { SharedLook } from '../../core/shared-look.ts';
import { runHostCommand } from './host-command.ts';

/** A file system that does not let go is no reason for others to wait. */
const limitMs = 5_000;

/** Unmounts for many sandboxes that end at once with one program: starting one for each is what would take the time. */
export class SharedUnmount {
  readonly #turns: LoopTurns;
  readonly #run = new SharedLook(() => this.#unmountAsked());
  #asked: string[] = [];

  constructor(turns: LoopTurns) {
    this.#turns = turns;
  }

  /** Tries it, the innermost first; whether they are gone is to be looked at afterwards. When `signal` fires only the waiting ends. */
  async unmount(points: readonly string[], signal: AbortSignal): Promise<void> {
    signal.throwIfAborted();
    this.#asked.push(...points);
    const stopped = Promise.withResolvers<never>();
    const onAbort = (): void => stopped.reject(signal.reason as Error);
    signal.addEventListener('abort', onAbort, { once: true });
    try {
      await Promise.race([this.#run.fresh(), stopped.promise]);
    } finally {
      signal.removeEventListener('abort', onAbort);
    }
  }

  async #unmountAsked(): Promise<void> {
    const points = this.#asked;
    this.#asked = [];
    if (points.length === 0) return;
    using limit = new LinkedAbort([], { ms: limitMs, reason: () => new Error('busy') });
    const command = { file: 'umount', args: ['--', ...points], turns: this.#turns };
    await runHostCommand({ ...command, lane: 'end' }, limit.signal).catch((error: unknown) => {
      if (!limit.signal.aborted) throw error;
    });
  }
}
