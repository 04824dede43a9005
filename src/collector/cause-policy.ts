/** What becomes of a member by how it ended: the caller's choice. */
import type { MemberEnd } from './member.ts';

/**
 * `keep`: it counts as it is. `refill`: another attempt takes its place. `mask`: its place is kept without loss, and outside of the group's baseline.
 * `zero`: its reward is 0. `give-up`: its row cannot be rolled out; the group is dropped.
 */
export type CauseDecision = 'keep' | 'refill' | 'mask' | 'zero' | 'give-up';

export type CausePolicy = (end: MemberEnd) => CauseDecision;

/** Nothing is invented: what the policy did not do itself is made anew, or is no part of the loss. */
export const defaultCauses: CausePolicy = ({ fault, reward, isRetryable }) => {
  switch (fault) {
    case null:
      return 'keep';
    case 'infrastructure':
    case 'cancelled':
      return 'refill';
    case 'task':
      return 'give-up';
    case 'verifier':
      return 'refill';
    case 'agent':
      if (reward !== null) return 'keep';
      return isRetryable ? 'refill' : 'mask';
  }
};
