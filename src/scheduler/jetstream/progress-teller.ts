/** Tells how far a rollout has come: a new stage at once, more of the same stage twice a second at most, of which the newest says all. */
import type { Clock } from '../../core/clock.ts';
import { LinkedAbort } from '../../core/linked-abort.ts';
import type { RolloutProgress } from '../../wire/rollout/progress.ts';

const everyMs = 500;

export class ProgressTeller {
  readonly #say: (progress: RolloutProgress) => void;
  readonly #clock: Clock;
  readonly #life = new LinkedAbort([]);
  #told: { readonly stage: string; readonly atMs: number } | null = null;
  /** The newest that is not told yet. */
  #waiting: RolloutProgress | null = null;
  #isAsleep = false;

  constructor(say: (progress: RolloutProgress) => void, clock: Clock) {
    this.#say = say;
    this.#clock = clock;
  }

  tell(progress: RolloutProgress): void {
    if (this.#life.signal.aborted) return;
    this.#waiting = progress;
    if (this.#leftMs() <= 0) this.flush();
    else if (!this.#isAsleep) void this.#tellLater();
  }

  /** Before something else is told. */
  flush(): void {
    const progress = this.#waiting;
    if (progress === null) return;
    this.#waiting = null;
    this.#told = { stage: progress.stage, atMs: this.#clock.monotonicMs() };
    this.#say(progress);
  }

  /** Nothing more is told. Idempotent. */
  close(): void {
    this.#waiting = null;
    this.#life.abort(new Error('the rollout has ended'));
  }

  async #tellLater(): Promise<void> {
    this.#isAsleep = true;
    try {
      for (let ms = this.#leftMs(); ms > 0; ms = this.#leftMs())
        await this.#clock.sleep(ms, this.#life.signal);
      this.flush();
    } catch {
      // It was closed.
    } finally {
      this.#isAsleep = false;
    }
  }

  /** Until what waits may be told. */
  #leftMs(): number {
    if (this.#waiting === null || this.#waiting.stage !== this.#told?.stage) return 0;
    return this.#told.atMs + everyMs - this.#clock.monotonicMs();
  }
}
