/**
 * How many groups are started now. By groups: while fewer are at work than the batch still needs. By samples: while what is open of them leaves room for a
 * whole group, so that a new one may start before any has its result. How many then: what is missing, times the oversampling, or the whole
 * amount once more.
 */
import type { CompiledCollectorOptions } from './options.ts';

export interface SubmissionState {
  /** Groups that the batch still needs. */
  readonly needed: number;
  /** Groups at work, and their places without an end. */
  readonly pendingGroups: number;
  readonly openPlaces: number;
}

export function groupsToStart(
  { needed, pendingGroups, openPlaces }: SubmissionState,
  options: Pick<
    CompiledCollectorOptions,
    'granularity' | 'topUp' | 'groupSize' | 'batchGroups' | 'startGroups'
  >,
): number {
  const { granularity, topUp, groupSize, batchGroups, startGroups } = options;
  const missing =
    granularity === 'group'
      ? needed - pendingGroups
      : Math.floor((needed * groupSize - openPlaces) / groupSize);
  if (missing <= 0) return 0;
  return topUp === 'whole' ? startGroups : Math.ceil((missing * startGroups) / batchGroups);
}
