/**
 * What telemetry is told, in its own words: the parts that do the work call an observer of this shape and know nothing of metrics or spans. Nothing
 * here can change or break what it hears of.
 */
import type { RolloutOutcome } from '../wire/rollout/rollout-outcome.ts';

/** What happens to a rollout. */
export type RolloutNews =
  | { readonly type: 'queued' | 'started' | 'requeued'; readonly attempt?: number }
  /** The agent's outcome is known; grading follows. */
  | { readonly type: 'completed' }
  | {
      readonly type: 'ended';
      readonly outcome: RolloutOutcome;
      /** What the backend says about it; null or absent = nothing. */
      readonly diagnostics?: Readonly<Record<string, unknown>> | null;
    }
  /** Callbacks and archive are done or given up: nothing of the rollout is left. */
  | { readonly type: 'settled' };

export interface CallbackNews {
  readonly channel: 'completion' | 'grader';
  readonly result: 'delivered' | 'dead' | 'withdrawn';
  readonly attempts: number;
}

export interface CallNews {
  readonly status: number | null;
  readonly firstByteMs: number | null;
  readonly durationMs: number;
  readonly answerBytes: number;
}

export interface CommitNews {
  readonly durationMs: number;
  readonly writes: number;
}

/** What a process of ours takes. */
export interface ProcessVitals {
  /** How late its event loop was since they were asked for before, in seconds, by quantile. */
  readonly lag: Readonly<Record<LagQuantile, number>>;
  readonly residentBytes: number;
  readonly cpuSeconds: number;
}

export type LagQuantile = 'p50' | 'p90' | 'p99' | 'max';

/** The gateway, or one process of it. Read when somebody scrapes. */
export interface GatewayFacts {
  /** `server`, or the number of the process. */
  readonly worker: string;
  /** Rollouts whose key is alive. */
  readonly routes: number;
  readonly callsRunning: number;
  /** null = it is in the server's process. */
  readonly own: {
    readonly isUp: boolean;
    readonly restarts: number;
    /** null = nothing was heard yet. */
    readonly vitals: ProcessVitals | null;
  } | null;
}

/** All methods return at once and never throw. */
export interface TelemetryObserver {
  rollout(rollout: { readonly id: string; readonly tenant: string }, news: RolloutNews): void;
  callback(rolloutId: string, news: CallbackNews): void;
  call(rolloutId: string, news: CallNews): void;
  commit(news: CommitNews): void;
}

/** Read when somebody scrapes. */
export interface AdmissionFacts {
  readonly capacity: {
    readonly max_concurrent: number;
    readonly max_queue_depth: number;
    readonly in_flight: number;
    readonly available: number;
    readonly accepting: boolean;
  };
  readonly runningCap: number;
  readonly running: number;
  readonly queued: number;
  readonly delivering: number;
  readonly paused: object | null;
  readonly tenants: readonly {
    readonly name: string;
    readonly running: number;
    readonly queued: number;
  }[];
}
