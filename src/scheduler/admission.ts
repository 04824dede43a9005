/**
 * Who may come in. A reservation is a count: checked and taken in one step without a wait in between, so that no burst gets past it, and held until the
 * rollout's callbacks and archive are done. Tenants share the places by weight: one may take more than its share only as long as nobody is waiting
 * for theirs, and a place that becomes free is kept for those who were sent away and are to come back.
 */
import type { Clock } from '../core/clock.ts';
import { RolloutError } from '../core/errors.ts';
import type { Capacity } from '../wire/rollout/health.ts';
import { DrainRate, ReturnTimes, waitS } from './return-times.ts';

/** Without history nobody knows better. */
const unknownWaitS = 5;

/**
 * Nobody is sent away for longer than it takes to fill all places anew so many times: should more become free than was expected, there is somebody to take
 * them. Who comes too early is sent away once more.
 */
const mostTurnovers = 2;

/** Nor further into the future than so many times what has been seen: a bad first second does not empty the next minute. */
const mostForesight = 2;

/** A client that was told to come back in a second needs some of the next one to do so. */
const lateMs = 2_000;

/** A place that is held. */
export interface Reservation {
  /** Its rollout is done. A reservation ends once: a second end is a defect. */
  release(): void;
  /** There was no new rollout for it. */
  giveBack(): void;
}

export interface AdmissionLimits {
  readonly maxConcurrent: number;
  readonly maxQueueDepth: number;
}

/** CONFIG_INVALID for what is no bound. */
export function admissionLimits(limits: {
  readonly maxConcurrent: number;
  readonly maxQueueDepth: number | null;
}): AdmissionLimits {
  const { maxConcurrent, maxQueueDepth } = limits;
  const isCount = (value: number, least: number): boolean =>
    Number.isSafeInteger(value) && value >= least;
  if (!isCount(maxConcurrent, 1))
    throw refusal('admission.max_concurrent', 'Set it to a whole number of at least 1.');
  if (maxQueueDepth !== null && !isCount(maxQueueDepth, 0))
    throw refusal('admission.max_queue_depth', 'Set it to a whole number, 0 for no queue.');
  return { maxConcurrent, maxQueueDepth: maxQueueDepth ?? maxConcurrent };
}

function refusal(field: string, remedy: string): RolloutError {
  return new RolloutError('CONFIG_INVALID', 'there is no unlimited admission', {
    phase: 'config',
    field,
    remedy,
  });
}

interface TenantPlaces {
  held: number;
  readonly away: ReturnTimes;
}

export class Admission {
  readonly #limits: AdmissionLimits;
  readonly #weightOf: (tenant: string) => number;
  readonly #clock: Clock;
  readonly #tenants = new Map<string, TenantPlaces>();
  readonly #drain = new DrainRate();
  #inFlight = 0;

  constructor(
    limits: AdmissionLimits,
    { weightOf, clock }: { readonly weightOf: (tenant: string) => number; readonly clock: Clock },
  ) {
    this.#limits = limits;
    this.#weightOf = weightOf;
    this.#clock = clock;
  }

  get #limit(): number {
    return this.#limits.maxConcurrent + this.#limits.maxQueueDepth;
  }

  get inFlight(): number {
    return this.#inFlight;
  }

  /** null = there is no place for this tenant now. */
  tryReserve(tenant: string): Reservation | null {
    const places = this.#places(tenant);
    this.#forgetLate();
    const free = this.#limit - this.#inFlight;
    if (free <= 0) return null;
    const weight = this.#activeWeight(tenant);
    if (places.held >= this.#share(tenant, weight) && free <= this.#keptForOthers(tenant, weight))
      return null;
    places.away.arrived();
    return this.force(tenant);
  }

  /** For what was accepted in an earlier life, whatever the limits say now. */
  force(tenant: string): Reservation {
    const places = this.#places(tenant);
    places.held += 1;
    this.#inFlight += 1;
    this.#noteLoad();
    let isHeld = true;
    const end = (isDrained: boolean): void => {
      if (!isHeld) throw new TypeError('a reservation was released twice');
      isHeld = false;
      if (isDrained) this.#drain.add(this.#clock.monotonicMs());
      places.held -= 1;
      this.#inFlight -= 1;
      this.#noteLoad();
    };
    return { release: () => end(true), giveBack: () => end(false) };
  }

  /** When a client that is sent away can expect a place: after those of its tenant that were sent away before it. It is awaited from then on. */
  sendAway(tenant: string): number {
    const { away } = this.#places(tenant);
    const now = this.#clock.monotonicMs();
    const rate = this.#drain.perSecond(now);
    const seconds = rate === null || rate === 0 ? unknownWaitS : this.#waitS(tenant, rate);
    away.add(now + seconds * 1000);
    return seconds;
  }

  #waitS(tenant: string, rate: number): number {
    const now = this.#clock.monotonicMs();
    const ahead = this.#places(tenant).away.countAfter(now);
    const ownRate = (rate * this.#weightOf(tenant)) / this.#activeWeight(tenant);
    const turnoverS = this.#inFlight / rate;
    const observedS = this.#drain.observedMs(now) / 1000;
    const knownS = Math.min(mostTurnovers * turnoverS, mostForesight * observedS);
    return waitS(Math.min((ahead + 1) / ownRate, Math.max(unknownWaitS, knownS)));
  }

  capacity(isAccepting: boolean): Capacity {
    const available = Math.max(0, this.#limit - this.#inFlight);
    return {
      max_concurrent: this.#limits.maxConcurrent,
      max_queue_depth: this.#limits.maxQueueDepth,
      in_flight: this.#inFlight,
      queue_depth: Math.max(0, this.#inFlight - this.#limits.maxConcurrent),
      available,
      accepting: isAccepting && available > 0,
    };
  }

  /** With a place for everybody, places become free as rarely as somebody comes. */
  #noteLoad(): void {
    const isBusy = this.#inFlight >= this.#limits.maxConcurrent;
    this.#drain.setBusy(isBusy, this.#clock.monotonicMs());
  }

  #places(tenant: string): TenantPlaces {
    const known = this.#tenants.get(tenant);
    if (known !== undefined) return known;
    const places = { held: 0, away: new ReturnTimes() };
    this.#tenants.set(tenant, places);
    return places;
  }

  #forgetLate(): void {
    const before = this.#clock.monotonicMs() - lateMs;
    for (const { away } of this.#tenants.values()) away.forgetBefore(before);
  }

  /** Weights of all tenants that hold or await something, this one included. */
  #activeWeight(tenant: string): number {
    let weight = 0;
    for (const [name, { held, away }] of this.#tenants)
      if (name === tenant || held > 0 || away.count > 0) weight += this.#weightOf(name);
    return weight;
  }

  /** Rounded up: a share below one place would be none at all. */
  #share(name: string, activeWeight: number): number {
    return Math.ceil((this.#limit * this.#weightOf(name)) / activeWeight - 1e-9);
  }

  #keptForOthers(tenant: string, activeWeight: number): number {
    let kept = 0;
    for (const [name, { held, away }] of this.#tenants)
      if (name !== tenant)
        kept += Math.min(away.count, Math.max(0, this.#share(name, activeWeight) - held));
    return kept;
  }
}
