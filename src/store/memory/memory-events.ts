import type { NewEvent, RolloutStore, StoredEvent } from '../rollout-store.ts';

/** The event log in memory. */
export class MemoryEvents {
  #events: StoredEvent[] = [];
  #newest = 0;
  readonly #listeners = new Set<() => void>();

  add(events: readonly NewEvent[]): void {
    if (events.length === 0) return;
    for (const event of events) {
      this.#newest += 1;
      this.#events.push({ ...structuredClone(event), cursor: this.#newest });
    }
    for (const listener of [...this.#listeners]) listener();
  }

  page({
    after,
    limit,
    tenant,
    rolloutId,
  }: Parameters<RolloutStore['events']>[0]): Awaited<ReturnType<RolloutStore['events']>> {
    const events = this.#events
      .filter(({ cursor }) => cursor > after)
      .filter((event) => tenant === undefined || event.tenant === tenant)
      .filter((event) => rolloutId === undefined || event.rolloutId === rolloutId)
      .slice(0, limit);
    const oldest = this.#events[0]?.cursor ?? this.#newest + 1;
    return { events: structuredClone(events), oldest, newest: this.#newest };
  }

  onAdded(listener: () => void): () => void {
    // Each registration is its own, also when one function is registered twice.
    const own = (): void => listener();
    this.#listeners.add(own);
    return () => void this.#listeners.delete(own);
  }

  /** Drops the oldest until one is to be kept, so that the log never has a hole; answers how many. */
  dropUntil(isKept: (event: StoredEvent) => boolean): number {
    const first = this.#events.findIndex(isKept);
    const dropped = this.#events.splice(0, first === -1 ? this.#events.length : first);
    return dropped.length;
  }
}
