import type { AbortReceipt } from './abort/abort-receipt.ts';
import type { CollectedGroup, DroppedGroup, GroupSeed } from './group.ts';
import type { LengthBias } from './report/length-bias.ts';

/** What one batch cost, each group and each rollout accounted for. */
export interface BatchReport {
  readonly groupsStarted: number;
  readonly groupsKept: number;
  readonly rolloutsStarted: number;
  /** Attempts that were lost and made anew. */
  readonly rolloutsRefilled: number;
  /** Lost attempts by cause. */
  readonly losses: Readonly<Record<string, number>>;
  /** Groups that did not make it, one by one. */
  readonly dropped: readonly DroppedGroup[];
  /** Groups that a later batch gets. */
  readonly returned: readonly {
    readonly seed: GroupSeed;
    readonly as: 'complete' | 'partial' | 'new';
  }[];
  /** Dropped groups by reason, with the filter's own words: `filtered/zero_std_1.0`. */
  readonly drops: Readonly<Record<string, number>>;
  /** From the start to the last group that the batch needed. */
  readonly collectMs: number;
  /** What the choice of the fastest does to lengths. */
  readonly lengthBias: LengthBias;
}

export interface Batch {
  /** As many as asked for, in the order in which they were drawn; fewer only where the dataset ended. */
  readonly groups: readonly CollectedGroup[];
  /**
   * Settles when what the batch did not need is gone, and never rejects. The batch is handed over before: await this before weights are changed under engines
   * that still work. null = there was nothing to end.
   */
  readonly quiet: Promise<AbortReceipt | null>;
  /** Complete only when `quiet` has settled. */
  report(): BatchReport;
}
