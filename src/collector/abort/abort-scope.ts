/** What an abort ends: a whole pool, or some of its groups. */
import type { MemberRun } from '../pool/member-run.ts';

export interface AbortScope {
  /** Attempts that wait or run. */
  readonly runs: readonly MemberRun[];
  /** Groups that are not over. */
  readonly pendingGroups: number;
  /** Nothing of it starts any more. Idempotent. */
  close(): void;
  /** Resolves when none is pending; rejects with the reason of `signal`, or goes on waiting. */
  idle(signal: AbortSignal): Promise<void>;
  /** Rewards and filters that still run are not waited for. */
  stopFinishing(reason: Error): void;
}
