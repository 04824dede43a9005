/** How far one call has come: what its route tells of it while it runs, and its observers when it has ended. */
import type { Clock } from '../core/clock.ts';
import type { CallState } from './live-route.ts';

/** One call that has ended, for observers. */
export interface RelayedCall {
  readonly rolloutId: string;
  /** Of the answer that the agent got; null = none: the agent or an abort ended the call first. */
  readonly status: number | null;
  readonly firstByteMs: number | null;
  readonly durationMs: number;
  readonly answerBytes: number;
}

export class CallProgress implements CallState {
  readonly #clock: Clock;
  readonly #startedMs: number;
  readonly #startedAtMs: number;
  #bytes = 0;
  #firstByteMs: number | null = null;
  #lastByteMs = 0;
  #isOver = false;
  /** Whoever waits for the end. */
  #waiting: PromiseWithResolvers<undefined> | null = null;

  constructor(clock: Clock) {
    this.#clock = clock;
    this.#startedMs = clock.monotonicMs();
    this.#startedAtMs = clock.now().getTime();
  }

  get startedAt(): Date {
    return new Date(this.#startedAtMs);
  }

  get bytes(): number {
    return this.#bytes;
  }

  /** Until the first bytes of the answer; null = none came. */
  get firstByteMs(): number | null {
    return this.#firstByteMs;
  }

  get lastByteAt(): Date | null {
    return this.#firstByteMs === null ? null : new Date(this.#startedAtMs + this.#lastByteMs);
  }

  get durationMs(): number {
    return this.#clock.monotonicMs() - this.#startedMs;
  }

  /** Resolves when the call has ended on both sides. */
  get gone(): Promise<void> {
    this.#waiting ??= Promise.withResolvers<undefined>();
    if (this.#isOver) this.#waiting.resolve(undefined);
    return this.#waiting.promise;
  }

  /** Something of the answer came; 0 = a sign of life that is no byte of it. */
  came(bytes: number): void {
    const ms = this.durationMs;
    this.#firstByteMs ??= ms;
    this.#lastByteMs = ms;
    this.#bytes += bytes;
  }

  /** The answer will be another one. */
  startsAgain(): void {
    this.#bytes = 0;
  }

  over(): void {
    this.#isOver = true;
    this.#waiting?.resolve(undefined);
  }

  /** `status` as `RelayedCall` has it. */
  ended(rolloutId: string, status: number | null): RelayedCall {
    return {
      ...{ rolloutId, status, firstByteMs: this.#firstByteMs },
      ...{ durationMs: this.durationMs, answerBytes: this.#bytes },
    };
  }
}
