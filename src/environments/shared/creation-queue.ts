import type { Clock } from '../../core/clock.ts';
import { RolloutError } from '../../core/errors.ts';
import { Limiter } from '../../core/limiter.ts';
import type { Logger } from '../../core/logger.ts';
import type { CreationAsk, SandboxLedger, SandboxLimits } from '../../store/sandbox-ledger.ts';

export interface CreationQueueParts {
  readonly ledger: SandboxLedger;
  readonly kind: string;
  readonly limits: SandboxLimits;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly random: () => number;
  /** Of this process among all; places in the ledger's queue carry it. */
  readonly owner: string;
}

/** Longest pause between two looks at the ledger, which also keeps the place in its queue. */
const longestLookMs = 2_000;
const firstBackoffMs = 500;
const longestBackoffMs = 30_000;

/**
 * Creations of this process in order: only the first one asks the ledger, so that processes take turns whatever their numbers. Further calls of
 * creations that have begun do not queue behind new ones.
 */
export class CreationQueue {
  readonly #parts: CreationQueueParts;
  readonly #first = new Limiter(1);
  #asked = 0;
  #heldSince: number | null = null;

  constructor(parts: CreationQueueParts) {
    this.#parts = parts;
  }

  /** Waits for the sandbox's turn; SANDBOX_HOURS_EXHAUSTED where no wait helps. Rejects with the reason of `signal`. */
  async admit(sandbox: NonNullable<CreationAsk['sandbox']>, signal: AbortSignal): Promise<void> {
    await this.#first.run(signal, () => this.#wait(sandbox, signal));
  }

  /** One more create call for a sandbox that was admitted. */
  async admitFurther(signal: AbortSignal): Promise<void> {
    await this.#wait(null, signal);
  }

  /** The provider refused: nobody on this machine creates before the time that it named, or a growing one. Answers that time. */
  backOff(attempt: number, retryAfterMs: number | null): number {
    const { ledger, kind, clock, random } = this.#parts;
    const growingMs = Math.min(longestBackoffMs, firstBackoffMs * 2 ** (attempt - 1));
    const pauseMs = Math.max(retryAfterMs ?? 0, growingMs / 2) + (growingMs / 2) * random();
    ledger.pause(kind, clock.now().getTime() + pauseMs);
    return pauseMs;
  }

  async #wait(sandbox: CreationAsk['sandbox'], signal: AbortSignal): Promise<void> {
    const { ledger, kind, limits, clock, owner } = this.#parts;
    this.#asked += 1;
    const waiter = `${owner}-${this.#asked}`;
    try {
      for (;;) {
        signal.throwIfAborted();
        const nowMs = clock.now().getTime();
        const answer = ledger.ask({ kind, waiter, sandbox, limits, nowMs });
        if (answer.state === 'exhausted') throw this.#exhausted(answer.usedHours);
        this.#noteHeld(answer.state === 'waiting' && answer.isHeld);
        if (answer.state === 'admitted') return;
        await clock.sleep(Math.min(longestLookMs, Math.ceil(answer.askAgainMs)), signal);
      }
    } catch (error) {
      ledger.leave(waiter);
      throw error;
    }
  }

  #noteHeld(isHeld: boolean): void {
    if (!isHeld) this.#heldSince = null;
    else if (this.#heldSince === null) {
      const { logger, clock, kind, limits } = this.#parts;
      this.#heldSince = clock.monotonicMs();
      logger.log('info', 'a sandbox waits until another one is gone', {
        environment: kind,
        max_live_sandboxes: limits.maxLive,
      });
    }
  }

  #exhausted(usedHours: number): RolloutError {
    const { kind, limits } = this.#parts;
    return new RolloutError(
      'SANDBOX_HOURS_EXHAUSTED',
      `sandboxes of ${kind} ran for ${usedHours.toFixed(2)} hours within the last 24; ${limits.maxHours} are allowed`,
      {
        phase: 'environment',
        field: 'environment.kwargs.max_sandbox_hours',
        remedy: 'Allow more hours, or go on when older ones are more than a day ago.',
      },
    );
  }
}
