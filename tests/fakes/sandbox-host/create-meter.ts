import type { ServiceLimits } from './service-faults.ts';

/** What a service answers with 429. */
export class CreateRefused extends Error {
  override readonly name = 'CreateRefused';
  readonly by: 'rate' | 'quota';
  /** For `Retry-After`, on the host's clock; null where only another sandbox's end helps. */
  readonly retryAfterMs: number | null;

  constructor(by: 'rate' | 'quota', retryAfterMs: number | null) {
    super(by === 'rate' ? 'too many creations' : 'too many sandboxes');
    this.by = by;
    this.retryAfterMs = retryAfterMs;
  }
}

/** Counts creations against quotas; what is refused counts for nothing. */
export class CreateMeter {
  readonly #limits: ServiceLimits;
  #recent: number[] = [];
  readonly refused = { rate: 0, quota: 0 };
  created = 0;
  peakLive = 0;
  peakPerSecond = 0;

  constructor(limits: ServiceLimits) {
    this.#limits = limits;
  }

  /** Takes a creation at `nowMs` with `live` sandboxes there, or throws `CreateRefused`. */
  take(nowMs: number, live: number): void {
    const { liveSandboxes, createsPerSecond } = this.#limits;
    this.#recent = this.#recent.filter((atMs) => atMs > nowMs - 1000);
    const [oldest = nowMs] = this.#recent;
    if (createsPerSecond !== null && this.#recent.length >= createsPerSecond) {
      this.refused.rate += 1;
      throw new CreateRefused('rate', oldest + 1000 - nowMs);
    }
    if (liveSandboxes !== null && live >= liveSandboxes) {
      this.refused.quota += 1;
      throw new CreateRefused('quota', null);
    }
    this.#recent.push(nowMs);
    this.created += 1;
    this.peakLive = Math.max(this.peakLive, live + 1);
    this.peakPerSecond = Math.max(this.peakPerSecond, this.#recent.length);
  }
}
