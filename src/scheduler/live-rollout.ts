/**
 * One rollout that has not ended, or whose callbacks are under way. While it waits this is all that is kept of it: the request is read again when it
 * starts. Whoever wants to end it claims it first; the first claim wins, so that of a result, a cancellation and a shutdown only one ends it.
 */
import type { Execution } from '../backends/execution-backend.ts';
import type { CancelReceipt } from '../wire/rollout/receipt.ts';
import type { RolloutOutcome } from '../wire/rollout/rollout-outcome.ts';
import type { RolloutProgress } from '../wire/rollout/progress.ts';
import { isTerminal, type RolloutState } from '../wire/rollout/rollout-state.ts';
import type { Reservation } from './admission.ts';
import type { Mover } from './rollout-state.ts';

export interface LiveRolloutOptions {
  readonly id: string;
  readonly tenant: string;
  readonly acceptedAt: Date;
  /** On the monotonic clock. */
  readonly acceptedMs: number;
  /** Longest wait for a running place. */
  readonly waitMs: number;
  readonly reservation: Reservation;
  readonly state: RolloutState;
  readonly attempt: number;
  readonly wantsSamples: boolean;
}

export class LiveRollout {
  readonly id: string;
  readonly tenant: string;
  readonly acceptedAt: Date;
  readonly acceptedMs: number;
  readonly waitMs: number;
  /** Its end says what samples there are. */
  readonly wantsSamples: boolean;
  readonly #reservation: Reservation;
  state: RolloutState;
  attempt: number;
  hasAgentBegun = false;
  /** The body of the completion callback is fixed. */
  hasCompleted = false;
  /** Of its latest delivery that the sender has. */
  lastSeq = 0;
  execution: Execution | null = null;
  progress: RolloutProgress | null = null;
  /** null until it has ended. */
  outcome: RolloutOutcome | null = null;
  /** What its end told of it, where its backend did not bring that about; null = nothing. */
  diagnostics: Readonly<Record<string, unknown>> | null = null;
  /** Since when the store has had no space for a change of it. */
  diskSince: Date | null = null;
  /** Of the cancellation that ended it, or is ending it. */
  receipt: Promise<CancelReceipt> | null = null;
  /** Work of whoever claimed it, where that is not its own run: what it ran is gone when this resolves. Set in the same moment as the claim. */
  ending: Promise<unknown> | null = null;
  #endedBy: Mover | null = null;
  #claimed: PromiseWithResolvers<void> | null = null;
  #holds = 0;
  #turn: Promise<unknown> = Promise.resolve();

  constructor(options: LiveRolloutOptions) {
    this.id = options.id;
    this.tenant = options.tenant;
    this.acceptedAt = options.acceptedAt;
    this.acceptedMs = options.acceptedMs;
    this.waitMs = options.waitMs;
    this.wantsSamples = options.wantsSamples;
    this.#reservation = options.reservation;
    this.state = options.state;
    this.attempt = options.attempt;
  }

  /** Who ends it, or has; null = nobody so far. */
  get endedBy(): Mover | null {
    return this.#endedBy;
  }

  /** False = somebody else is ending it. */
  claim(by: Mover): boolean {
    if (this.#endedBy !== null) return false;
    this.#endedBy = by;
    this.#claimed?.resolve();
    return true;
  }

  /** Resolves when somebody claims it. */
  claimed(): Promise<void> {
    this.#claimed ??= Promise.withResolvers();
    if (this.#endedBy !== null) this.#claimed.resolve();
    return this.#claimed.promise;
  }

  /** Changes of one rollout are written one after the other, each knowing the state that the one before it left. */
  inTurn<T>(work: () => Promise<T>): Promise<T> {
    const done = this.#turn.then(work, work);
    this.#turn = done.catch(() => undefined);
    return done;
  }

  /** Somebody has work with it: its reservation stays. */
  hold(): void {
    this.#holds += 1;
  }

  /** True = nobody has any more and it has ended: the reservation was released, and it is to be forgotten. */
  letGo(): boolean {
    this.#holds -= 1;
    if (this.#holds > 0 || !isTerminal(this.state)) return false;
    this.#reservation.release();
    return true;
  }
}
