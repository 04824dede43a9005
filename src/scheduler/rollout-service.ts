/**
 * What the server's routes call: rollouts in, answers out. Implemented by `RolloutScheduler`. Everything is scoped by `Caller`: a tenant sees and
 * cancels only its own rollouts, the operator all.
 */
import type { CancelDisposition, CancelSelector } from '../wire/rollout/cancel.ts';
import type { Capacity } from '../wire/rollout/health.ts';
import type { RolloutProgress } from '../wire/rollout/progress.ts';
import type { CancelReceipt } from '../wire/rollout/receipt.ts';
import type { RolloutRequest } from '../wire/rollout/rollout-request.ts';
import type { RolloutSamples } from '../wire/rollout/rollout-samples.ts';
import type { RolloutState } from '../wire/rollout/rollout-state.ts';
import type { RouteActivity } from '../wire/rollout/route-activity.ts';
import type { Delivery, RolloutQuery, StoredEvent, StoredRollout } from '../store/rollout-store.ts';

/** Who calls: the operator (control key, or no keys configured) sees every tenant. */
export interface Caller {
  /** null = the operator. */
  readonly tenant: string | null;
}

export type SubmitAnswer =
  /** Durable; also for a repeated id with the same body, whatever became of it. */
  | { readonly kind: 'accepted'; readonly id: string; readonly isRepeat: boolean }
  /** 409: the id exists with another body. */
  | { readonly kind: 'conflict'; readonly id: string }
  /** 409: the id was cancelled before it came. */
  | { readonly kind: 'tombstone'; readonly id: string }
  /** 429. */
  | {
      readonly kind: 'refused';
      readonly reason: 'full' | 'paused' | 'disk-full';
      readonly detail: string;
      readonly retryAfterS: number;
    }
  /** 503: shutting down. */
  | { readonly kind: 'stopping'; readonly retryAfterS: number };

export interface RolloutStatus {
  readonly rolloutId: string;
  readonly status: RolloutState | 'unknown';
  readonly reward: number | null;
  readonly errMessage: string | null;
  /** Absent until it has ended, and where nobody wants any. */
  readonly samples?: RolloutSamples;
}

/** A rollout with everything that is known about it now. */
export interface RolloutView {
  readonly rollout: StoredRollout;
  /** null once ended. */
  readonly progress: RolloutProgress | null;
  /** null = no live model route. */
  readonly calls: RouteActivity | null;
  readonly deliveries: readonly Delivery[];
  readonly receipts: readonly CancelReceipt[];
}

export interface AdmissionView {
  readonly capacity: Capacity;
  /** How many may run now: `max_concurrent`, or less while the engine's KV cache is full. */
  readonly runningCap: number;
  readonly running: number;
  readonly queued: number;
  /** Ended, with callbacks or archive still under way. */
  readonly delivering: number;
  /** null = not paused. */
  readonly paused: { readonly reason: string; readonly since: Date; readonly retryAt: Date } | null;
  readonly isStopping: boolean;
  readonly tenants: readonly {
    readonly name: string;
    readonly weight: number;
    readonly running: number;
    readonly queued: number;
  }[];
}

export interface RolloutService {
  /** `digest` of the canonical body, `text` the canonical body. Resolves only when the answer holds. */
  submit(submission: {
    readonly request: RolloutRequest;
    readonly canonicalBody: string;
    readonly caller: Caller;
  }): Promise<SubmitAnswer>;
  status(id: string, caller: Caller): Promise<RolloutStatus>;
  /** Every id of an `ids` selector appears; for the others only matching live rollouts. Resolves with the receipts, within about 2 s. */
  cancel(
    selector: CancelSelector,
    caller: Caller,
  ): Promise<ReadonlyMap<string, CancelReceipt & { readonly disposition: CancelDisposition }>>;
  inspect(id: string, caller: Caller): Promise<RolloutView | null>;
  /** Without `deliveries`, `receipts`: newest first. */
  list(query: RolloutQuery, caller: Caller): Promise<readonly RolloutView[]>;
  events(
    options: { readonly after: number; readonly limit: number; readonly rolloutId?: string },
    caller: Caller,
  ): Promise<{
    readonly events: readonly StoredEvent[];
    readonly oldest: number;
    readonly newest: number;
  }>;
  onEvents(listener: () => void): () => void;
  admission(): AdmissionView;
  /** Fields of the backend's own health. */
  backendHealth(): Readonly<Record<string, unknown>>;
  deadLetters(
    options: { readonly limit: number; readonly afterSeq: number },
    caller: Caller,
  ): Promise<readonly Delivery[]>;
  /** null = no dead delivery of this key that the caller may see. */
  replay(key: string, caller: Caller): Promise<Delivery | null>;
}
