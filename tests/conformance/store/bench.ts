import type { CancelReceipt } from '../../../src/wire/rollout/receipt.ts';
import type { RolloutOutcome } from '../../../src/wire/rollout/rollout-outcome.ts';
import type { NewDelivery, NewRollout, RolloutStore } from '../../../src/store/rollout-store.ts';

export interface StoreAdapter {
  readonly name: string;
  /** Opens an empty store; `now` stamps what it stamps by itself. */
  open(now: () => Date): Promise<OpenStore>;
}

export interface OpenStore extends AsyncDisposable {
  readonly store: RolloutStore;
  /** Closes the store and opens it again on the same files; null = it forgets. */
  readonly reopen: (() => Promise<RolloutStore>) | null;
}

export interface StoreCase {
  readonly id: string;
  readonly title: string;
  /** Runs only where a store remembers. */
  readonly needsDurability?: boolean;
  run(bench: StoreBench): Promise<void>;
}

/** One case's store, and things to put into it. */
export class StoreBench {
  store: RolloutStore;
  readonly clock: { nowMs: number };
  readonly #open: OpenStore;

  constructor(open: OpenStore, clock: { nowMs: number }) {
    this.#open = open;
    this.store = open.store;
    this.clock = clock;
  }

  async reopen(): Promise<void> {
    if (this.#open.reopen !== null) this.store = await this.#open.reopen();
  }

  async accept(...rollouts: readonly NewRollout[]): Promise<void> {
    for (const rollout of rollouts) await this.store.accept(rollout);
  }

  /** An accepted rollout that ended, with its deliveries as given. */
  async ended(
    rollout: NewRollout,
    { at = rollout.acceptedAt, deliveries = [] as readonly NewDelivery[] } = {},
  ): Promise<void> {
    await this.store.accept(rollout);
    await this.store.change({
      id: rollout.id,
      from: ['queued'],
      set: { state: 'success', endedAt: at, outcome: success },
      deliveries,
    });
  }
}

export const startMs = Date.parse('2030-01-01T00:00:00.000Z');
/** A moment after the start. */
export const at = (ms: number): Date => new Date(startMs + ms);

export const rollout = (id: string, more: Partial<NewRollout> = {}): NewRollout => ({
  id,
  tenant: 'default',
  request: `{"rollout_id":"${id}"}`,
  digest: `digest of ${id}`,
  acceptedAt: at(0),
  ...more,
});

export const delivery = (
  rolloutId: string,
  channel: 'completion' | 'grader' = 'completion',
  more: Partial<NewDelivery> = {},
): NewDelivery => ({
  key: `key-${rolloutId}-${channel}`,
  rolloutId,
  channel,
  url: `http://127.0.0.1:9/${channel}/${rolloutId}`,
  authorization: 'Bearer controller',
  body: `{"status":"success","rollout_id":"${rolloutId}"}`,
  ...more,
});

export const success: RolloutOutcome = {
  status: 'success',
  reward: 0.5,
  errMessage: null,
  errCategory: null,
  stage: 'done',
  cause: null,
  trainable: true,
  retryable: false,
  verdict: { rewards: { reward: 0.5 } },
};

export const receipt = (rolloutId: string, more: Partial<CancelReceipt> = {}): CancelReceipt => ({
  rolloutId,
  disposition: 'cancelled_running',
  stage: 'agent',
  modelCallsEnded: 2,
  processesKilled: 3,
  confirmedGone: ['container'],
  isComplete: true,
  problem: null,
  durationMs: 12,
  at: at(5),
  ...more,
});

export const event = (rolloutId: string, type = 'rollout:started', tenant = 'default') => ({
  rolloutId,
  tenant,
  type,
  at: at(1),
  payload: { attempt: 1 },
});

export const ids = (rows: readonly { readonly id: string }[]): string[] => rows.map(({ id }) => id);
