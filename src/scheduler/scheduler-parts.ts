/** What a scheduler is made of and what it keeps to. */
import type { RolloutArchive } from '../archive/rollout-archive.ts';
import type { ExecutionBackend } from '../backends/execution-backend.ts';
import type { CallbackDelivery } from '../callbacks/callback-delivery.ts';
import type { Clock } from '../core/clock.ts';
import type { Logger } from '../core/logger.ts';
import type { EngineLoad } from '../engines/engine.ts';
import type { GatewayControl } from '../gateway/gateway-control.ts';
import type { SampleMaker } from '../gateway/samples/sample-maker.ts';
import type { Retention, RolloutStore } from '../store/rollout-store.ts';
import type { RolloutOutcome } from '../wire/rollout/rollout-outcome.ts';
import type { TrainSettings } from '../wire/rollout/train-rules.ts';
import type { FairQueueParts } from './fair-queue.ts';
import type { RolloutQueue } from './queue.ts';

/** What happens to a rollout, for whoever counts and traces. */
export type RolloutNews =
  | { readonly type: 'queued' | 'started' | 'requeued'; readonly attempt?: number }
  /** The agent's outcome is known; grading follows. */
  | { readonly type: 'completed' }
  | {
      readonly type: 'ended';
      readonly outcome: RolloutOutcome;
      /** As its callbacks have them; null = none. */
      readonly diagnostics: Readonly<Record<string, unknown>> | null;
      /** Of its sample; absent = its backend did not bring the end about. */
      readonly metrics?: Readonly<Record<string, unknown>>;
      /** What its agent says of its run; absent = nothing. */
      readonly agentMetadata?: Readonly<Record<string, unknown>>;
    }
  /** Callbacks and archive are done or given up: nothing of the rollout is left here. */
  | { readonly type: 'settled' };

/** Changes nothing and breaks nothing: what it throws is logged. */
export interface RolloutObserver {
  rollout(rollout: { readonly id: string; readonly tenant: string }, news: RolloutNews): void;
}

/** Hosts that execute rollouts, where that is not this process alone. */
export interface HostPlaces {
  /** Once, by the scheduler: the queue that hands rollouts to the hosts. */
  openQueue(parts: FairQueueParts): RolloutQueue;
  /** Running places of the hosts that are there now. */
  places(): number;
  /** Called when there may be more. */
  onPlaces(listener: () => void): void;
}

export interface SchedulerParts {
  readonly store: RolloutStore;
  readonly backend: ExecutionBackend;
  readonly gateway: GatewayControl;
  readonly callbacks: CallbackDelivery;
  readonly archive: RolloutArchive;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly observers: readonly RolloutObserver[];
  /** Absent = rollouts wait in memory, and as many run as may. */
  readonly hosts?: HostPlaces;
  /** Absent = no samples are made. */
  readonly sampleMaker?: SampleMaker;
  /** What the engine is under, for the cap that follows it; null = no such cap. */
  readonly engineLoad: ((signal: AbortSignal) => Promise<EngineLoad>) | null;
  /** Whether the disk has room for what new rollouts leave; asked for every submission. Absent = as long as the store takes them. */
  readonly hasRoom?: () => boolean;
  /** Hears the secrets of a rollout while it is executed, before anything can log them; what it answers ends that. */
  readonly maskSecrets?: (secrets: readonly string[]) => () => void;
}

export interface TenantOptions {
  readonly name: string;
  /** Above zero. */
  readonly weight: number;
  /** Rollouts whose id begins with this belong to it when no key says whose they are; null = none do. */
  readonly idPrefix: string | null;
}

export interface SchedulerOptions {
  readonly limits: {
    /** Rollouts that run at once. */
    readonly maxConcurrent: number;
    /** Rollouts that may wait beyond those; null = as many as may run. */
    readonly maxQueueDepth: number | null;
    /** Longest wait for a running place. */
    readonly queueTimeoutMs: number;
    /** Within this a cancellation answers, with what is not done by then as a problem. */
    readonly cancelMs: number;
  };
  /** `default` need not be among them. */
  readonly tenants: readonly TenantOptions[];
  readonly pause: {
    /** Infrastructure failures in a row after which admission pauses; 0 = never. */
    readonly afterFailures: number;
    /** After a pause of this length one rollout is tried. */
    readonly retryMs: number;
  };
  readonly kv: {
    /** Share of the KV cache in use at which fewer rollouts run, and below which more may run again. */
    readonly high: number;
    readonly low: number;
    readonly pollMs: number;
  };
  readonly retention: Retention & {
    readonly archiveBytes: number;
    readonly everyMs: number;
  };
  /** Of rollouts that do not say; absent = no samples are made of them. */
  readonly train?: TrainSettings;
  /** Of this program, for the archive. */
  readonly version: string;
}

export const defaultCancelMs = 1_900;
export const defaultKvPollMs = 500;
export const defaultRetentionEveryMs = 60_000;
