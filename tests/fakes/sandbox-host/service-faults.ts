import { seededRandom } from '../../../src/core/seeded-random.ts';

export interface ServiceLimits {
  /** Live sandboxes at most, those being made included; null = any number. */
  readonly liveSandboxes: number | null;
  /** Creations in any second at most, on the host's clock; null = any number. */
  readonly createsPerSecond: number | null;
  /** How long a creation takes, on the host's clock. */
  readonly createMs: number;
}

/**
 * `failed-create`: the sandbox ends as failed. `lost-answer`: it exists, and the connection that asked for it is cut. `half-open`: a stream is
 * taken and stays silent for ever.
 */
export type ServiceFault = 'failed-create' | 'lost-answer' | 'half-open';

/** Faults by share of all, from a seeded sequence, and faults planted for the next occasion. */
export class ServiceFaults {
  readonly #random: () => number;
  readonly #shares: Partial<Record<ServiceFault, number>>;
  readonly #planted = new Map<ServiceFault, number>();
  readonly #struck = new Map<ServiceFault, number>();

  constructor(shares: Partial<Record<ServiceFault, number>> = {}, seed = 1) {
    this.#shares = shares;
    this.#random = seededRandom(seed);
  }

  /** The next `times` occasions have this fault. */
  plant(fault: ServiceFault, times = 1): void {
    this.#planted.set(fault, (this.#planted.get(fault) ?? 0) + times);
  }

  /** Whether this occasion has the fault. */
  strikes(fault: ServiceFault): boolean {
    const planted = this.#planted.get(fault) ?? 0;
    if (planted > 0) this.#planted.set(fault, planted - 1);
    const isHit = planted > 0 || this.#random() < (this.#shares[fault] ?? 0);
    if (isHit) this.#struck.set(fault, this.count(fault) + 1);
    return isHit;
  }

  /** How often it has struck. */
  count(fault: ServiceFault): number {
    return this.#struck.get(fault) ?? 0;
  }
}
