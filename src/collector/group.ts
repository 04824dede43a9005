import type { DatasetRow } from './dataset/dataset-row.ts';
import type { CollectedMember, MemberEnd } from './member.ts';
import type { TrainingSample } from './training-sample.ts';

/** What an earlier round left of a member. */
export interface MemberRemains {
  readonly memberIndex: number;
  /** Its result, when it had one: it is not rolled out again. */
  readonly member: CollectedMember | null;
  /** Else what it had sampled. */
  readonly partial: readonly TrainingSample[];
}

/** A group to start: a row, and what an earlier round left of it. */
export interface GroupSeed {
  /** Counts groups over the whole run; a group that is started again keeps its own. */
  readonly groupIndex: number;
  readonly row: DatasetRow;
  /** Of its first member; the others follow. */
  readonly firstIndex: number;
  /** Empty = it is new. */
  readonly remains: readonly MemberRemains[];
  /** How often it was started before. */
  readonly rounds: number;
}

/** Every member has its end and, where one is asked for, its reward. */
export interface CollectedGroup {
  readonly seed: GroupSeed;
  readonly members: readonly CollectedMember[];
  readonly durationMs: number;
  /** Of the weights when its oldest member was started, or older where what is trained was sampled before; null = unknown. */
  readonly oldestVersion: number | null;
}

export type DropReason =
  /** A row whose rollouts fail whatever is tried: it is not drawn any more. */
  | 'given-up'
  /** No attempt was left for one of its places. */
  | 'lost'
  /** A filter said so; `detail` is its reason. */
  | 'filtered'
  /** A reward hook or filter threw. */
  | 'hook-failed'
  /** The abort ended it. */
  | 'aborted'
  /** Older than the staleness limit. */
  | 'stale'
  /** Complete, but the batch was full and the policy says discard. */
  | 'surplus';

/** A group that is not handed over, and why: each is accounted for by itself. */
export interface DroppedGroup {
  readonly seed: GroupSeed;
  readonly reason: DropReason;
  /** For people and counters: `zero_std_1.0`, `TASK_NOT_FOUND`; null = nothing more is known. */
  readonly detail: string | null;
  /** What its members came to, as far as they did. */
  readonly ends: readonly (MemberEnd | null)[];
}
