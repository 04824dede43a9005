/** Asks from time to time what became of rollouts that nobody was told of: one that is cancelled by somebody else sends no callback. */
import type { Clock } from '../../core/clock.ts';
import { messageOf } from '../../core/errors.ts';
import { LinkedAbort } from '../../core/linked-abort.ts';

export interface StateWatchOptions {
  readonly clock: Clock;
  /** A rollout is asked about when it has been here for so long, and then as often. */
  readonly everyMs: number;
  /** May reject: it is asked again the next time. */
  readonly hasEnded: (id: string, signal: AbortSignal) => Promise<boolean>;
  readonly onEnded: (id: string) => void;
  /** Nobody has answered for a minute, and again for every further one. */
  readonly onSilence?: (minutes: number, problem: string) => void;
}

const minuteMs = 60_000;

export class StateWatch {
  readonly #options: StateWatchOptions;
  readonly #askedMs = new Map<string, number>();
  readonly #life = new LinkedAbort([]);
  #going: Promise<void> | null = null;
  /** Since when nobody answers, and for how many minutes that has been told; null = somebody does. */
  #silence: { readonly sinceMs: number; told: number } | null = null;

  constructor(options: StateWatchOptions) {
    this.#options = options;
  }

  add(id: string): void {
    this.#askedMs.set(id, this.#options.clock.monotonicMs());
    this.#going ??= this.#go();
  }

  has(id: string): boolean {
    return this.#askedMs.has(id);
  }

  remove(id: string): void {
    this.#askedMs.delete(id);
  }

  async close(): Promise<void> {
    this.#life.abort(new Error('the watch is over'));
    await this.#going;
  }

  async #go(): Promise<void> {
    const { clock, everyMs } = this.#options;
    const { signal } = this.#life;
    while (!signal.aborted) {
      await clock.sleep(everyMs, signal).catch(() => undefined);
      const due = [...this.#askedMs].filter(([, ms]) => clock.monotonicMs() - ms >= everyMs);
      for (const [id] of due) await this.#ask(id);
    }
  }

  async #ask(id: string): Promise<void> {
    const { clock, hasEnded, onEnded } = this.#options;
    try {
      const isOver = await hasEnded(id, this.#life.signal);
      this.#silence = null;
      if (!this.#askedMs.has(id)) return;
      this.#askedMs.set(id, clock.monotonicMs());
      if (isOver) onEnded(id);
    } catch (error) {
      // Asked again the next time.
      if (!this.#life.signal.aborted) this.#failed(error);
    }
  }

  /** Rollouts wait for a server that restarts; whoever waits for them hears of one that does not. */
  #failed(error: unknown): void {
    const { clock, onSilence } = this.#options;
    this.#silence ??= { sinceMs: clock.monotonicMs(), told: 0 };
    const minutes = Math.floor((clock.monotonicMs() - this.#silence.sinceMs) / minuteMs);
    if (minutes <= this.#silence.told) return;
    this.#silence.told = minutes;
    onSilence?.(minutes, messageOf(error));
  }
}
