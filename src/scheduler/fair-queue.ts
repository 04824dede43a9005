/**
 * Lines of tenants, served so that time on running places is shared by weight. A tenant is charged with the time that its rollouts took, and for each that
 * runs with what it has taken so far and what one takes on average. The next place goes to the tenant with the least charge for its weight. Within a
 * tenant: first come, first served.
 */
import type { QueueCounts, QueueEntry } from './queue.ts';

const roundingError = 1e-9;

/** Shorter rollouts count as this long: places must never be free of charge. */
const shortestMs = 1;

/** How much the latest rollout moves what is expected of the next one. */
const weightOfLatest = 0.1;

/** A running place that was given out. */
export interface Taken {
  readonly entry: QueueEntry;
  readonly atMs: number;
}

interface Line {
  readonly tenant: string;
  readonly weight: number;
  /** In order; `returned` goes before `waiting`. */
  readonly returned: Map<string, QueueEntry>;
  readonly waiting: Map<string, QueueEntry>;
  readonly running: Set<Taken>;
  /** Sum of `atMs` over `running`. */
  startsMs: number;
  /** Milliseconds that places were taken, divided by the weight. A line that was empty starts where the others are: absence saves nothing up. */
  doneCharge: number;
}

export interface FairQueueParts {
  readonly weightOf: (tenant: string) => number;
  readonly monotonicMs: () => number;
}

export class FairQueue {
  readonly #parts: FairQueueParts;
  readonly #lines = new Map<string, Line>();
  readonly #tenantOf = new Map<string, string>();
  #expectedMs = 1_000;
  /** What the line had been charged that was served last. */
  #level = 0;
  #running = 0;

  constructor(parts: FairQueueParts) {
    this.#parts = parts;
  }

  push(entry: QueueEntry): void {
    this.#join(entry).waiting.set(entry.id, entry);
  }

  remove(id: string): boolean {
    const line = this.#lines.get(this.#tenantOf.get(id) ?? '');
    this.#tenantOf.delete(id);
    return line !== undefined && (line.waiting.delete(id) || line.returned.delete(id));
  }

  /** Takes the next and a running place for it; null = nobody waits. */
  take(): Taken | null {
    const now = this.#parts.monotonicMs();
    const [line, charge] = this.#next(now) ?? [];
    if (line === undefined || charge === undefined) return null;
    const [entry] = (line.returned.size > 0 ? line.returned : line.waiting).values();
    if (entry === undefined) return null;
    this.remove(entry.id);
    const taken = { entry, atMs: now };
    line.running.add(taken);
    line.startsMs += now;
    this.#running += 1;
    this.#level = Math.max(this.#level, charge);
    return taken;
  }

  /** The place is free again. */
  leave(taken: Taken): void {
    const tookMs = Math.max(shortestMs, this.#parts.monotonicMs() - taken.atMs);
    this.#expectedMs += weightOfLatest * (tookMs - this.#expectedMs);
    this.#free(taken, tookMs);
  }

  /** It did not begin: it is the first of its line again, and the place was free of charge. */
  putBack(taken: Taken): void {
    this.#free(taken, 0);
    this.#join(taken.entry).returned.set(taken.entry.id, taken.entry);
  }

  counts(tenant?: string): QueueCounts {
    if (tenant === undefined) return { queued: this.#tenantOf.size, leased: this.#running };
    const line = this.#lines.get(tenant);
    return line === undefined
      ? { queued: 0, leased: 0 }
      : { queued: sizeOf(line), leased: line.running.size };
  }

  #free(taken: Taken, tookMs: number): void {
    const line = this.#lines.get(taken.entry.tenant);
    if (line?.running.delete(taken) !== true) return;
    this.#running -= 1;
    line.startsMs -= taken.atMs;
    line.doneCharge += tookMs / line.weight;
  }

  #join({ id, tenant }: QueueEntry): Line {
    let line = this.#lines.get(tenant);
    if (line === undefined) {
      line = {
        ...{ tenant, weight: this.#parts.weightOf(tenant), startsMs: 0, doneCharge: 0 },
        ...{ returned: new Map(), waiting: new Map(), running: new Set() },
      };
      this.#lines.set(tenant, line);
    }
    if (sizeOf(line) === 0) {
      const behind = this.#level - this.#chargeOf(line, this.#parts.monotonicMs());
      line.doneCharge += Math.max(0, behind);
    }
    this.#tenantOf.set(id, tenant);
    return line;
  }

  #next(now: number): readonly [line: Line, charge: number] | null {
    let best: readonly [line: Line, charge: number] | null = null;
    for (const line of this.#lines.values()) {
      if (sizeOf(line) === 0) continue;
      const charge = this.#chargeOf(line, now);
      if (best === null || goesBefore([line, charge], best)) best = [line, charge];
    }
    return best;
  }

  #chargeOf({ running, startsMs, doneCharge, weight }: Line, now: number): number {
    const soFarMs = running.size * now - startsMs;
    return doneCharge + (soFarMs + running.size * this.#expectedMs) / weight;
  }
}

/** Where the charge is the same, the place goes to the share that would be least exceeded by it. */
function goesBefore(
  [one, oneCharge]: readonly [Line, number],
  [other, otherCharge]: readonly [Line, number],
): boolean {
  const difference = oneCharge - otherCharge;
  if (Math.abs(difference) > roundingError) return difference < 0;
  return (one.running.size + 1) / one.weight < (other.running.size + 1) / other.weight;
}

function sizeOf(line: Line): number {
  return line.returned.size + line.waiting.size;
}
