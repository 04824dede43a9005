/**
 * Lines of tenants, served so that the running places are shared by weight. The next place goes to the tenant whose share would be least exceeded by
 * it; where that is the same for several, to the one that has been served least for its weight so far. Within a tenant: first come, first served.
 */
import type { QueueEntry } from './queue.ts';

const roundingError = 1e-9;

interface Line {
  readonly tenant: string;
  /** In order; `returned` goes before `waiting`. */
  readonly returned: Map<string, QueueEntry>;
  readonly waiting: Map<string, QueueEntry>;
  running: number;
  /** Grows by 1/weight per place. A line that was empty starts again where the others are: absence saves nothing up. */
  served: number;
}

export class FairQueue {
  readonly #weightOf: (tenant: string) => number;
  readonly #lines = new Map<string, Line>();
  readonly #tenantOf = new Map<string, string>();
  #lastServed = 0;
  #running = 0;

  constructor(weightOf: (tenant: string) => number) {
    this.#weightOf = weightOf;
  }

  push(entry: QueueEntry): void {
    const line = this.#join(entry);
    line.waiting.set(entry.id, entry);
  }

  pushFront(entry: QueueEntry): void {
    const line = this.#join(entry);
    line.returned.set(entry.id, entry);
  }

  remove(id: string): boolean {
    const line = this.#lines.get(this.#tenantOf.get(id) ?? '');
    this.#tenantOf.delete(id);
    return line !== undefined && (line.waiting.delete(id) || line.returned.delete(id));
  }

  /** Takes the next and a running place for it; null = nobody waits. */
  take(): QueueEntry | null {
    let best: Line | null = null;
    for (const line of this.#lines.values())
      if (sizeOf(line) > 0 && (best === null || this.#goesBefore(line, best))) best = line;
    if (best === null) return null;
    const [entry] = (best.returned.size > 0 ? best.returned : best.waiting).values();
    if (entry === undefined) return null;
    this.remove(entry.id);
    best.running += 1;
    this.#running += 1;
    this.#lastServed = Math.max(this.#lastServed, best.served);
    best.served += 1 / this.#weightOf(best.tenant);
    return entry;
  }

  /** A running place of the tenant is free. */
  leave(tenant: string): void {
    const line = this.#lines.get(tenant);
    if (line === undefined) return;
    line.running -= 1;
    this.#running -= 1;
  }

  counts(tenant?: string): { readonly queued: number; readonly leased: number } {
    if (tenant === undefined) return { queued: this.#tenantOf.size, leased: this.#running };
    const line = this.#lines.get(tenant);
    return line === undefined
      ? { queued: 0, leased: 0 }
      : { queued: sizeOf(line), leased: line.running };
  }

  #join({ id, tenant }: QueueEntry): Line {
    let line = this.#lines.get(tenant);
    if (line === undefined) {
      line = { tenant, returned: new Map(), waiting: new Map(), running: 0, served: 0 };
      this.#lines.set(tenant, line);
    }
    if (sizeOf(line) === 0) line.served = Math.max(line.served, this.#lastServed);
    this.#tenantOf.set(id, tenant);
    return line;
  }

  #goesBefore(one: Line, other: Line): boolean {
    const excess = (line: Line): number => (line.running + 1) / this.#weightOf(line.tenant);
    const difference = excess(one) - excess(other);
    return Math.abs(difference) > roundingError ? difference < 0 : one.served < other.served;
  }
}

function sizeOf(line: Line): number {
  return line.returned.size + line.waiting.size;
}
