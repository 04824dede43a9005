/** A sandbox provider: creates per second, in a bucket that holds one second of them, live ones at most, and the time that a create takes. */
import type { Agenda } from './agenda.ts';
import { Fifo } from './fifo.ts';

export interface ProviderLimits {
  readonly createsPerSec: number;
  readonly maxLive: number;
  readonly createMs: () => number;
}

export class Provider {
  readonly #agenda: Agenda;
  readonly #limits: ProviderLimits;
  readonly #line = new Fifo<{ readonly since: number; readonly made: () => void }>();
  #tokens: number;
  #filledAt = 0;
  #isPlanned = false;
  #live = 0;
  #created = 0;
  #waitedMs = 0;
  #since = 0;

  constructor(agenda: Agenda, limits: ProviderLimits) {
    this.#agenda = agenda;
    this.#limits = limits;
    this.#tokens = Math.max(1, limits.createsPerSec);
  }

  create(made: () => void): void {
    this.#line.push({ since: this.#agenda.now, made });
    this.#drain();
  }

  destroy(): void {
    this.#live -= 1;
    this.#drain();
  }

  restartCount(): void {
    this.#created = this.#waitedMs = 0;
    this.#since = this.#agenda.now;
  }

  get live(): number {
    return this.#live;
  }

  get waiting(): number {
    return this.#line.length;
  }

  get meanWaitMs(): number {
    return this.#created === 0 ? 0 : this.#waitedMs / this.#created;
  }

  /** Share of the creates that were allowed. */
  get utilisation(): number {
    const seconds = (this.#agenda.now - this.#since) / 1_000;
    return seconds === 0 ? 0 : this.#created / (seconds * this.#limits.createsPerSec);
  }

  #drain(): void {
    this.#fill();
    while (this.#line.length > 0 && this.#live < this.#limits.maxLive && this.#tokens >= 1) {
      const next = this.#line.shift();
      if (next === undefined) return;
      this.#tokens -= 1;
      this.#live += 1;
      this.#created += 1;
      this.#waitedMs += this.#agenda.now - next.since;
      this.#agenda.after(this.#limits.createMs(), next.made);
    }
    const isHeldByRate = this.#line.length > 0 && this.#live < this.#limits.maxLive;
    if (!isHeldByRate || this.#isPlanned) return;
    this.#isPlanned = true;
    // A little later than exactly then: the sum of many fillings may fall short of 1 by rounding.
    const ms = ((1 - this.#tokens) / this.#limits.createsPerSec) * 1_000 + 1e-6;
    this.#agenda.after(ms, () => {
      this.#isPlanned = false;
      this.#drain();
    });
  }

  #fill(): void {
    const { createsPerSec } = this.#limits;
    if (createsPerSec === Number.POSITIVE_INFINITY) this.#tokens = createsPerSec;
    else {
      const gained = ((this.#agenda.now - this.#filledAt) / 1_000) * createsPerSec;
      this.#tokens = Math.min(Math.max(1, createsPerSec), this.#tokens + gained);
    }
    this.#filledAt = this.#agenda.now;
  }
}
