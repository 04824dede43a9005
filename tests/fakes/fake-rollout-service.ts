/** Rollouts that are taken in and never run: what the routes are tried against where only their own behaviour counts. */
import { createHash } from 'node:crypto';
import type {
  AdmissionView,
  Caller,
  RolloutService,
  RolloutView,
  SubmitAnswer,
} from '../../src/scheduler/rollout-service.ts';
import { MemoryRolloutStore } from '../../src/store/memory/memory-rollout-store.ts';
import type { StoredRollout } from '../../src/store/rollout-store.ts';
import type { CancelReceipt } from '../../src/wire/rollout/receipt.ts';

export class FakeRolloutService implements RolloutService {
  readonly store = new MemoryRolloutStore(() => this.now);
  now = new Date('2026-01-02T03:04:05.678Z');
  /** What `submit` answers instead of taking the rollout. */
  refusal: SubmitAnswer | null = null;
  backend: Readonly<Record<string, unknown>> = {
    status: 'ok',
    backend: 'fake',
    max_concurrency: 2,
  };
  #minted = 0;
  /** What is known of a live rollout, by id. */
  readonly live = new Map<string, Pick<RolloutView, 'progress' | 'calls'>>();
  view: AdmissionView = {
    capacity: {
      max_concurrent: 2,
      max_queue_depth: 2,
      in_flight: 1,
      queue_depth: 0,
      available: 3,
      accepting: true,
    },
    ...{ runningCap: 2, running: 1, queued: 0, delivering: 0, paused: null, isStopping: false },
    tenants: [
      { name: 'blue', weight: 1, running: 1, queued: 0 },
      { name: 'green', weight: 2, running: 0, queued: 0 },
    ],
  };

  async submit(submission: Parameters<RolloutService['submit']>[0]): Promise<SubmitAnswer> {
    if (this.refusal !== null) return this.refusal;
    const { request, canonicalBody, caller } = submission;
    const id = request.rollout_id ?? `minted-${(this.#minted += 1)}`;
    const answer = await this.store.accept({
      ...{ id, tenant: caller.tenant ?? 'default', request: canonicalBody, acceptedAt: this.now },
      digest: createHash('sha256').update(canonicalBody).digest('hex'),
    });
    if (answer.kind === 'different') return { kind: 'conflict', id };
    if (answer.kind === 'tombstone') return { kind: 'tombstone', id };
    return { kind: 'accepted', id, isRepeat: answer.kind === 'same' };
  }

  async status(id: string, caller: Caller): ReturnType<RolloutService['status']> {
    const rollout = await this.#find(id, caller);
    return {
      rolloutId: id,
      status: rollout?.state ?? 'unknown',
      reward: rollout?.outcome?.reward ?? null,
      errMessage: rollout?.outcome?.errMessage ?? null,
    };
  }

  async cancel(
    selector: Parameters<RolloutService['cancel']>[0],
    caller: Caller,
  ): ReturnType<RolloutService['cancel']> {
    const receipts = new Map<string, CancelReceipt>();
    const prefix = selector.kind === 'prefix' ? selector.prefix : '';
    const ids =
      selector.kind === 'ids'
        ? selector.ids
        : (await this.#list({ prefix, limit: 1_000 }, caller)).map(({ id }) => id);
    for (const id of ids) {
      const rollout = await this.#find(id, caller);
      const receipt = this.#receipt(id, rollout?.state === 'queued');
      if (rollout === null) {
        await this.store.bury([{ id, tenant: caller.tenant ?? 'default', receipt }]);
        receipts.set(id, receipt);
        continue;
      }
      const isCancelled = await this.store.change({
        ...{ id, from: ['queued'], receipt, withdraw: true },
        set: { state: 'cancelled', endedAt: this.now },
      });
      if (isCancelled || selector.kind === 'ids') receipts.set(id, receipt);
    }
    return receipts;
  }

  async inspect(id: string, caller: Caller): Promise<RolloutView | null> {
    const rollout = await this.#find(id, caller);
    if (rollout === null) return null;
    return {
      ...this.#view(rollout),
      deliveries: await this.store.deliveries(id),
      receipts: await this.store.receipts(id),
    };
  }

  async list(
    query: Parameters<RolloutService['list']>[0],
    caller: Caller,
  ): ReturnType<RolloutService['list']> {
    const rollouts = await this.#list(query, caller);
    return rollouts.map((rollout) => this.#view(rollout));
  }

  events(
    options: Parameters<RolloutService['events']>[0],
    caller: Caller,
  ): ReturnType<RolloutService['events']> {
    return this.store.events({ ...options, ...tenantOf(caller) });
  }

  onEvents(listener: () => void): () => void {
    return this.store.onEvents(listener);
  }

  admission(): AdmissionView {
    return this.view;
  }

  backendHealth(): Readonly<Record<string, unknown>> {
    return this.backend;
  }

  deadLetters(
    options: Parameters<RolloutService['deadLetters']>[0],
    caller: Caller,
  ): ReturnType<RolloutService['deadLetters']> {
    return this.store.deadLetters({ ...options, ...tenantOf(caller) });
  }

  async replay(key: string, caller: Caller): ReturnType<RolloutService['replay']> {
    const dead = await this.deadLetters({ limit: 1_000, afterSeq: 0 }, caller);
    return dead.some((delivery) => delivery.key === key) ? await this.store.replay(key) : null;
  }

  async #find(id: string, { tenant }: Caller): Promise<StoredRollout | null> {
    const rollout = await this.store.rollout(id);
    return rollout !== null && (tenant === null || rollout.tenant === tenant) ? rollout : null;
  }

  #list(query: Parameters<RolloutService['list']>[0], caller: Caller) {
    return this.store.list({ ...query, ...tenantOf(caller) });
  }

  #view(rollout: StoredRollout): RolloutView {
    const live = this.live.get(rollout.id) ?? { progress: null, calls: null };
    return { rollout, ...live, deliveries: [], receipts: [] };
  }

  #receipt(rolloutId: string, isQueued: boolean): CancelReceipt {
    return {
      ...{ rolloutId, at: this.now, durationMs: 3, isComplete: true, problem: null },
      disposition: isQueued ? 'cancelled_queued' : 'not_found',
      stage: isQueued ? 'queued' : null,
      ...{ modelCallsEnded: 0, processesKilled: 0, confirmedGone: [] },
    };
  }
}

function tenantOf({ tenant }: Caller): { readonly tenant?: string } {
  return tenant === null ? {} : { tenant };
}
