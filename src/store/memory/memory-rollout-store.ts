import { RolloutError } from '../../core/errors.ts';
import { isTerminal } from '../../wire/rollout/rollout-state.ts';
import type { CancelReceipt } from '../../wire/rollout/receipt.ts';
import { acceptedRollout, buriedRollout, queuedEvent, repeatKind } from '../rollout-records.ts';
import type { Tombstone } from '../rollout-records.ts';
import type {
  AcceptAnswer,
  Delivery,
  LeftRollouts,
  NewEvent,
  NewRollout,
  Retention,
  RolloutChange,
  RolloutQuery,
  RolloutStore,
  StoredRollout,
} from '../rollout-store.ts';
import { MemoryDeliveries } from './memory-deliveries.ts';
import { MemoryEvents } from './memory-events.ts';

/** Keeps everything in this process: for tests, and for servers that may forget. Every call is over before the next one starts. */
export class MemoryRolloutStore implements RolloutStore {
  /** In order of acceptance. */
  readonly #rollouts = new Map<string, StoredRollout>();
  readonly #receipts = new Map<string, CancelReceipt[]>();
  readonly #deliveries: MemoryDeliveries;
  readonly #events = new MemoryEvents();
  readonly #onClose: () => void;
  #isClosed = false;

  /** `now` stamps deliveries: `clock.now`. */
  constructor(
    now: () => Date,
    { onClose = () => undefined }: { readonly onClose?: () => void } = {},
  ) {
    this.#deliveries = new MemoryDeliveries(now);
    this.#onClose = onClose;
  }

  async accept(rollout: NewRollout): Promise<AcceptAnswer> {
    await this.#turn();
    const known = this.#rollouts.get(rollout.id);
    if (known !== undefined)
      return { kind: repeatKind(known, rollout.digest), rollout: structuredClone(known) };
    this.#rollouts.set(rollout.id, structuredClone(acceptedRollout(rollout)));
    this.#events.add([queuedEvent(rollout)]);
    return { kind: 'accepted' };
  }

  async change(change: RolloutChange): Promise<boolean> {
    await this.#turn();
    const known = this.#rollouts.get(change.id);
    if (known === undefined || !change.from.includes(known.state)) return false;
    this.#rollouts.set(change.id, { ...known, ...structuredClone(change.set) });
    for (const delivery of change.deliveries ?? []) this.#deliveries.add(delivery);
    if (change.withdraw === true) this.#deliveries.withdraw(change.id);
    if (change.receipt !== undefined) this.#addReceipt(change.id, change.receipt);
    this.#events.add(change.events ?? []);
    return true;
  }

  async bury(tombstones: readonly Tombstone[]): Promise<void> {
    await this.#turn();
    for (const tombstone of tombstones) {
      if (this.#rollouts.has(tombstone.id)) continue;
      this.#rollouts.set(tombstone.id, structuredClone(buriedRollout(tombstone)));
      this.#addReceipt(tombstone.id, tombstone.receipt);
    }
  }

  async note(events: readonly NewEvent[]): Promise<void> {
    await this.#turn();
    this.#events.add(events);
  }

  async rollout(id: string): Promise<StoredRollout | null> {
    await this.#turn();
    return structuredClone(this.#rollouts.get(id) ?? null);
  }

  knows(id: string): boolean {
    return this.#rollouts.has(id);
  }

  async list(query: RolloutQuery): Promise<readonly StoredRollout[]> {
    await this.#turn();
    const { tenant, states, prefix = '', after, limit } = query;
    const newestFirst = [...this.#rollouts.values()].reverse();
    const start = after === undefined ? 0 : newestFirst.findIndex(({ id }) => id === after) + 1;
    if (after !== undefined && start === 0) return [];
    const page = newestFirst
      .slice(start)
      .filter((rollout) => tenant === undefined || rollout.tenant === tenant)
      .filter((rollout) => states === undefined || states.includes(rollout.state))
      .filter((rollout) => rollout.id.startsWith(prefix));
    return structuredClone(page.slice(0, limit));
  }

  async receipts(rolloutId: string): Promise<readonly CancelReceipt[]> {
    await this.#turn();
    return structuredClone(this.#receipts.get(rolloutId) ?? []);
  }

  async events(options: Parameters<RolloutStore['events']>[0]): ReturnType<RolloutStore['events']> {
    await this.#turn();
    return this.#events.page(options);
  }

  onEvents(listener: () => void): () => void {
    return this.#events.onAdded(listener);
  }

  async deliveries(rolloutId: string): Promise<readonly Delivery[]> {
    await this.#turn();
    return this.#deliveries.ofRollout(rolloutId);
  }

  async delivered(
    key: string,
    { attempts, controllerReport }: Parameters<RolloutStore['delivered']>[1],
  ): Promise<void> {
    await this.#turn();
    const delivery = this.#deliveries.end(key, { state: 'delivered', attempts, lastError: null });
    const known = this.#rollouts.get(delivery?.rolloutId ?? '');
    if (known !== undefined && controllerReport !== null)
      this.#rollouts.set(known.id, { ...known, controllerReport });
  }

  async attempted(
    key: string,
    { attempts, error }: Parameters<RolloutStore['attempted']>[1],
  ): Promise<void> {
    await this.#turn();
    this.#deliveries.end(key, { state: 'pending', attempts, lastError: error });
  }

  async dead(key: string, { attempts, error }: Parameters<RolloutStore['dead']>[1]): Promise<void> {
    await this.#turn();
    this.#deliveries.end(key, { state: 'dead', attempts, lastError: error });
  }

  async deadLetters({
    tenant,
    limit,
    afterSeq,
  }: Parameters<RolloutStore['deadLetters']>[0]): Promise<readonly Delivery[]> {
    await this.#turn();
    return this.#deliveries
      .inState('dead')
      .filter(({ seq, rolloutId }) => seq > afterSeq && this.#isOf(tenant, rolloutId))
      .slice(0, limit);
  }

  async replay(key: string, tenant?: string): Promise<Delivery | null> {
    await this.#turn();
    return this.#deliveries.replay(key, (id) => this.#isOf(tenant, id));
  }

  async recover(): Promise<LeftRollouts> {
    await this.#turn();
    const rollouts = [...this.#rollouts.values()];
    const pending = this.#deliveries.inState('pending');
    const awaited = new Set(pending.map(({ rolloutId }) => rolloutId));
    const delivering = rollouts
      .filter(({ id, state }) => isTerminal(state) && awaited.has(id))
      .map(({ id, tenant, acceptedAt, state, attempt }) => ({
        ...{ id, tenant, acceptedAt, state, attempt },
      }));
    const live = rollouts.filter(({ state }) => !isTerminal(state));
    return structuredClone({ live, delivering, pending });
  }

  async prune(retention: Retention, now: Date): ReturnType<RolloutStore['prune']> {
    await this.#turn();
    const oldest = now.getTime() - retention.maxAgeMs;
    const ended = [...this.#rollouts.values()]
      .filter(({ state }) => isTerminal(state))
      .sort((a, b) => Number(a.endedAt ?? a.acceptedAt) - Number(b.endedAt ?? b.acceptedAt));
    const pending = new Set(this.#deliveries.inState('pending').map(({ rolloutId }) => rolloutId));
    const removedIds = ended
      .filter(
        (rollout, index) =>
          Number(rollout.endedAt ?? rollout.acceptedAt) < oldest ||
          index < ended.length - retention.maxEnded,
      )
      .map(({ id }) => id)
      .filter((id) => !pending.has(id));
    for (const id of removedIds) {
      this.#rollouts.delete(id);
      this.#receipts.delete(id);
    }
    this.#deliveries.remove(new Set(removedIds));
    const events = this.#events.dropUntil(
      ({ rolloutId, at }) => at.getTime() >= oldest && this.#rollouts.has(rolloutId),
    );
    return { rollouts: removedIds.length, events, removedIds };
  }

  backup(path: string): Promise<void> {
    return Promise.reject(
      new RolloutError('STORE_UNSUPPORTED', `no copy to ${path}: the store is in memory only`, {
        phase: 'server',
        remedy: 'Start the server with a data folder.',
      }),
    );
  }

  close(): Promise<void> {
    if (!this.#isClosed) this.#onClose();
    this.#isClosed = true;
    return Promise.resolve();
  }

  /** Like a real store, an answer never comes within the call; what is called first is still applied first. */
  async #turn(): Promise<void> {
    if (this.#isClosed)
      throw new RolloutError('STORE_FAILED', 'the store is closed', { phase: 'server' });
    await Promise.resolve();
  }

  #isOf(tenant: string | undefined, id: string): boolean {
    return tenant === undefined || this.#rollouts.get(id)?.tenant === tenant;
  }

  #addReceipt(id: string, receipt: CancelReceipt): void {
    this.#receipts.set(id, [...(this.#receipts.get(id) ?? []), structuredClone(receipt)]);
  }
}
