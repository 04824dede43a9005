/** What an abort did, step by step and rollout by rollout. Nothing of it is fatal: what failed stands in `problem`. */

export type AbortReason = 'batch-full' | 'stopped' | 'shutdown' | 'stale' | 'failed';

export interface EngineAbort {
  readonly url: string;
  /** Requests to end everything that the engine took. */
  readonly passes: number;
  /** Requests that it still had when it was last asked; null = it does not say. */
  readonly load: number | null;
  readonly problem: string | null;
}

/**
 * `none`: no plugin is configured, the look-up was not made. `absent`: the plugin has no `abort`. `called`: it came to its end. `failed`: it threw.
 * `timed-out`: its deadline passed first; it is waited for no longer. `not-loaded`: its module could not be imported.
 */
export type HookState = 'none' | 'absent' | 'called' | 'failed' | 'timed-out' | 'not-loaded';

export interface HookReceipt {
  readonly state: HookState;
  readonly durationMs: number;
  readonly problem: string | null;
  /** What it says it ended, for reports; null = it says nothing. */
  readonly cancelled: number | null;
}

/** What became of a rollout that was live when the abort began. */
export interface RolloutReceipt {
  readonly rolloutId: string;
  readonly groupIndex: number;
  /**
   * `not-started`: it waited for its place. `finished`: it came to its own end meanwhile. `ended`: it was ended. `abandoned`: it did not end within the
   * bound, and is waited for no longer; a late result is dropped.
   */
  readonly how: 'not-started' | 'finished' | 'ended' | 'abandoned';
  /** Since the abort began. */
  readonly afterMs: number;
  /** What whoever ran it confirms about its end: the server's receipt; null = nothing. */
  readonly confirmed: RolloutConfirmation | null;
}

export interface RolloutConfirmation {
  readonly rolloutId: string;
  /** False when something of it could not be confirmed gone. */
  readonly isGone: boolean;
  readonly detail: string | null;
}

export interface AbortReceipt {
  readonly reason: AbortReason;
  readonly at: Date;
  readonly durationMs: number;
  /** Rollouts that were live or waiting when it began, each once. */
  readonly rollouts: readonly RolloutReceipt[];
  /** Of looking for engines; null = they were found, or none are configured. */
  readonly discoveryProblem: string | null;
  readonly engines: readonly EngineAbort[];
  readonly hook: HookReceipt;
  /** Nothing was abandoned, no engine has requests left, and nothing is unconfirmed. */
  readonly isComplete: boolean;
}
