/**
 * Stops taking work when the machine fails at it: after a number of infrastructure failures in a row nothing is admitted and nothing starts. When the
 * pause is over one rollout is tried; it is the one that decides between going on and another pause.
 */
import type { Clock } from '../core/clock.ts';
import { errorRegistry, type ErrorCode } from '../core/error-registry.ts';

export interface FailurePauseOptions {
  /** 0 = never. */
  readonly afterFailures: number;
  readonly retryMs: number;
}

export interface PauseView {
  readonly reason: string;
  readonly since: Date;
  readonly retryAt: Date;
}

interface Pause {
  readonly view: PauseView;
  readonly retryAtMs: number;
  /** The rollout that is tried; null = none is. */
  probe: string | null;
}

export class FailurePause {
  readonly #options: FailurePauseOptions;
  readonly #clock: Clock;
  readonly #onChange: () => void;
  readonly #signal: AbortSignal;
  #failures = 0;
  #pause: Pause | null = null;

  constructor(
    options: FailurePauseOptions,
    parts: {
      readonly clock: Clock;
      /** Called when more may start: after a pause, and when one is over and a rollout may be tried. */
      readonly onChange: () => void;
      /** Ends the waiting for the end of a pause. */
      readonly signal: AbortSignal;
    },
  ) {
    this.#options = options;
    this.#clock = parts.clock;
    this.#onChange = parts.onChange;
    this.#signal = parts.signal;
  }

  /** null = not paused. */
  get view(): PauseView | null {
    return this.#pause?.view ?? null;
  }

  /** Milliseconds until a rollout may be tried; 0 = one is, or may be. */
  get leftMs(): number {
    return Math.max(0, (this.#pause?.retryAtMs ?? 0) - this.#clock.monotonicMs());
  }

  /** `waiting`: how many wait already. Without any, the next to come is the one that is tried. */
  mayAdmit(waiting: number): boolean {
    return this.#pause === null || (this.#mayTry && waiting === 0);
  }

  /** Asked once per start, with the id that would start. */
  mayStart(id: string): boolean {
    if (this.#pause === null) return true;
    if (!this.#mayTry) return false;
    this.#pause.probe = id;
    return true;
  }

  /** Whether any rollout could start now. */
  get isOpen(): boolean {
    return this.#pause === null || this.#mayTry;
  }

  /** How a rollout ended that was executed; null = without a failure. */
  ended(id: string, cause: ErrorCode | null): void {
    const isInfrastructure = cause !== null && errorRegistry[cause].category === 'infrastructure';
    if (!isInfrastructure) {
      this.#failures = 0;
      if (this.#pause === null) return;
      this.#pause = null;
      this.#onChange();
      return;
    }
    this.#failures += 1;
    const isNew = this.#pause === null && this.#isTooMany;
    if (isNew || this.#pause?.probe === id) this.#begin(cause);
  }

  /** It was neither a success nor a failure: cancelled, or given back. */
  withdrawn(id: string): void {
    if (this.#pause?.probe !== id) return;
    this.#pause.probe = null;
    this.#onChange();
  }

  get #isTooMany(): boolean {
    const { afterFailures } = this.#options;
    return afterFailures > 0 && this.#failures >= afterFailures;
  }

  get #mayTry(): boolean {
    return this.#pause !== null && this.#pause.probe === null && this.leftMs === 0;
  }

  #begin(cause: ErrorCode): void {
    const since = this.#pause?.view.since ?? this.#clock.now();
    const { retryMs } = this.#options;
    this.#pause = {
      view: {
        reason: `${this.#failures} rollouts in a row failed by the machine or a service it needs, the last with ${cause}`,
        since,
        retryAt: new Date(this.#clock.now().getTime() + retryMs),
      },
      retryAtMs: this.#clock.monotonicMs() + retryMs,
      probe: null,
    };
    this.#clock.sleep(retryMs, this.#signal).then(this.#onChange, () => undefined);
  }
}
