import type { Clock } from '../../core/clock.ts';
import type { Logger } from '../../core/logger.ts';
import { fleetProtocol, type FrontBeat } from './fleet-messages.ts';

export interface HeardFrontOptions {
  readonly version: string;
  readonly backendKind: string;
  readonly leaseMs: number;
}

/** The front end that a host hears: which of those that speak, and how long ago. */
export class HeardFront {
  readonly #options: HeardFrontOptions;
  readonly #parts: { readonly clock: Clock; readonly logger: Logger };
  readonly #refused = new Set<string>();
  #last: FrontBeat | null = null;
  #lastMs = 0;

  constructor(
    options: HeardFrontOptions,
    parts: { readonly clock: Clock; readonly logger: Logger },
  ) {
    this.#options = options;
    this.#parts = parts;
  }

  /** False = it is not to be listened to; one that cannot be worked for is logged once. */
  accept(beat: FrontBeat): boolean {
    const refusal = this.#refusalOf(beat);
    if (refusal !== null) {
      if (!this.#refused.has(beat.epoch))
        this.#parts.logger.log('error', 'a front end was refused', { ...refusal });
      this.#refused.add(beat.epoch);
      return false;
    }
    if (this.#isReplaced(beat)) return false;
    this.#last = beat;
    this.#lastMs = this.#parts.clock.monotonicMs();
    return true;
  }

  /** The last words of one whose follower speaks already. When that is silent it is no follower: clocks of machines differ. */
  #isReplaced({ epoch, startedAt }: FrontBeat): boolean {
    const last = this.#last;
    if (last === null || epoch === last.epoch || startedAt >= last.startedAt) return false;
    return this.#parts.clock.monotonicMs() - this.#lastMs <= this.#options.leaseMs;
  }

  #refusalOf({
    protocol,
    version,
    backendKind,
  }: FrontBeat): { readonly problem: string; readonly remedy: string } | null {
    if (protocol !== fleetProtocol)
      return {
        problem: `it speaks protocol ${protocol} (slipway ${version}), this worker ${fleetProtocol} (slipway ${this.#options.version})`,
        remedy: 'Update the older one.',
      };
    const kind = this.#options.backendKind;
    if (backendKind === kind) return null;
    return {
      problem: `its rollouts are for the backend ${backendKind}, not ${kind}`,
      remedy: 'Start both with the same backend.kind.',
    };
  }
}
