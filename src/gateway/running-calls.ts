import type { Clock } from '../core/clock.ts';
import { LinkedAbort } from '../core/linked-abort.ts';
import type { GatewayError } from './gateway-error.ts';

/** An abort waits no longer for connections to be gone. */
const abortBoundMs = 1_000;

export interface RunningCall {
  /** Resolves when it has ended on both sides. */
  readonly gone: Promise<void>;
  /** The agent hears `answer` where it has heard nothing yet. */
  end(reason: Error, answer: GatewayError): void;
}

/** Calls that have not ended, by rollout; those whose key is dead included. */
export class RunningCalls {
  readonly #clock: Clock;
  readonly #byRollout = new Map<string, Set<RunningCall>>();
  #size = 0;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  get size(): number {
    return this.#size;
  }

  get rollouts(): readonly string[] {
    return [...this.#byRollout.keys()];
  }

  of(rolloutId: string): readonly RunningCall[] {
    return [...(this.#byRollout.get(rolloutId) ?? [])];
  }

  begun(rolloutId: string, call: RunningCall): void {
    const calls = this.#byRollout.get(rolloutId);
    this.#size += 1;
    if (calls === undefined) this.#byRollout.set(rolloutId, new Set([call]));
    else calls.add(call);
  }

  ended(rolloutId: string, call: RunningCall): void {
    const calls = this.#byRollout.get(rolloutId);
    if (calls?.delete(call) === true) this.#size -= 1;
    if (calls?.size === 0) this.#byRollout.delete(rolloutId);
  }

  /** Resolves when those that run now are gone, within the bound of an abort. */
  async gone(rolloutId: string): Promise<void> {
    const calls = this.of(rolloutId);
    if (calls.length === 0) return;
    using bound = new LinkedAbort([]);
    const late = this.#clock.sleep(abortBoundMs, bound.signal).catch(() => undefined);
    await Promise.race([Promise.all(calls.map((call) => call.gone)), late]);
    bound.abort(new Error('the calls are gone'));
  }
}
