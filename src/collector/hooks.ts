/**
 * What a user may decide about groups and members. A hook that throws costs its group and nothing else; so does one that is not done within its limit. Hooks
 * see finished members only: nobody asks them about what was lost or cut off.
 */
import type { CollectedGroup } from './group.ts';
import type { CollectedMember } from './member.ts';

/** Keep, or drop with a word for the counters. */
export interface FilterVerdict {
  readonly keep: boolean;
  readonly reason?: string;
}

export interface CollectorHooks {
  /** Scores one member that has no reward. Not called for masked members, nor where `groupReward` is set. */
  readonly memberReward?: (
    member: CollectedMember,
    signal: AbortSignal,
  ) => Promise<number> | number;
  /** Scores all members at once, in their order; called once per group, when no member is missing. It replaces what they had. */
  readonly groupReward?: (
    group: CollectedGroup,
    signal: AbortSignal,
  ) => Promise<readonly number[]> | readonly number[];
  /** Whether a complete, scored group is worth training. */
  readonly groupFilter?: (
    group: CollectedGroup,
    signal: AbortSignal,
  ) => Promise<FilterVerdict> | FilterVerdict;
  /** Which members of a kept group stay in the batch without a loss: true = removed. It cannot shrink the batch. */
  readonly sampleFilter?: (
    group: CollectedGroup,
    signal: AbortSignal,
  ) => Promise<readonly boolean[]> | readonly boolean[];
}
