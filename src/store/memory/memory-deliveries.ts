import type { Delivery, NewDelivery } from '../rollout-store.ts';

type End = Pick<Delivery, 'state' | 'attempts' | 'lastError'>;

/** The outbox in memory, by key and in order of creation. */
export class MemoryDeliveries {
  readonly #byKey = new Map<string, Delivery>();
  readonly #keysOf = new Map<string, string[]>();
  readonly #now: () => Date;
  #lastSeq = 0;

  constructor(now: () => Date) {
    this.#now = now;
  }

  /** The first bytes of a channel win. */
  add(delivery: NewDelivery): void {
    const { key, rolloutId, channel } = delivery;
    if (this.#byKey.has(key) || this.#of(rolloutId).some((other) => other.channel === channel))
      return;
    this.#lastSeq += 1;
    this.#keysOf.set(rolloutId, [...(this.#keysOf.get(rolloutId) ?? []), key]);
    this.#byKey.set(key, {
      ...delivery,
      seq: this.#lastSeq,
      state: 'pending',
      attempts: 0,
      createdAt: this.#now(),
      lastAttemptAt: null,
      lastError: null,
    });
  }

  withdraw(rolloutId: string): void {
    for (const delivery of this.#of(rolloutId))
      if (delivery.state === 'pending' || delivery.state === 'dead')
        this.#byKey.set(delivery.key, { ...delivery, state: 'withdrawn' });
  }

  /** Records an attempt. A delivery that arrived stays delivered, and only a pending one can fail. */
  end(key: string, end: End): Delivery | null {
    const known = this.#byKey.get(key);
    if (known === undefined || (end.state !== 'delivered' && known.state !== 'pending'))
      return null;
    const changed = { ...known, ...end, lastAttemptAt: this.#now() };
    this.#byKey.set(key, changed);
    return changed;
  }

  /** Its attempts are counted anew. */
  replay(key: string, isTheirs: (rolloutId: string) => boolean): Delivery | null {
    const known = this.#byKey.get(key);
    if (known?.state !== 'dead' || !isTheirs(known.rolloutId)) return null;
    const changed: Delivery = { ...known, state: 'pending', attempts: 0 };
    this.#byKey.set(key, changed);
    return structuredClone(changed);
  }

  ofRollout(rolloutId: string): readonly Delivery[] {
    return structuredClone(this.#of(rolloutId));
  }

  inState(state: Delivery['state']): readonly Delivery[] {
    return structuredClone([...this.#byKey.values()].filter((one) => one.state === state));
  }

  remove(rolloutIds: ReadonlySet<string>): void {
    for (const rolloutId of rolloutIds) {
      for (const { key } of this.#of(rolloutId)) this.#byKey.delete(key);
      this.#keysOf.delete(rolloutId);
    }
  }

  #of(rolloutId: string): Delivery[] {
    const keys = this.#keysOf.get(rolloutId) ?? [];
    return keys.flatMap((key) => this.#byKey.get(key) ?? []);
  }
}
