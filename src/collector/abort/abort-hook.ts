/** The agent's own abort: what reaches agents that go on calling engines after their requests were ended. */
import type { AbortReason, RolloutConfirmation } from './abort-receipt.ts';

export interface AbortHookRequest {
  readonly reason: AbortReason;
  /** Rollouts that are running now. */
  readonly rolloutIds: readonly string[];
}

export interface AbortHookAnswer {
  /** How many trials it ended; null = it does not know. */
  readonly cancelled: number | null;
  readonly confirmed: readonly RolloutConfirmation[];
}

/** May throw and may hang: it has a deadline of its own, which its signal tells, and the abort goes on without it. */
export type AbortHook = (
  request: AbortHookRequest,
  signal: AbortSignal,
) => Promise<AbortHookAnswer>;

/** Looks for the hook, once per abort. null = there is none. Rejects when the module it would be in cannot be imported. */
export type AbortHookLookup = () => Promise<AbortHook | null>;
