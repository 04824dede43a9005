/** What a rollout's outcome at the server means for its member: pure. */
import { errorRegistry, type ErrorCode } from '../../core/error-registry.ts';
import type { RolloutDetailDocument } from '../../wire/api/rollout.ts';
import type { MemberEnd, MemberFault } from '../member.ts';
import type { TrainingSample } from '../training-sample.ts';

type OutcomeDocument = NonNullable<RolloutDetailDocument['outcome']>;

export function memberEnd(
  outcome: OutcomeDocument,
  {
    samples,
    wasAborted,
    metadata,
  }: {
    readonly samples: readonly TrainingSample[];
    /** Some call was cut off at the engine. */
    readonly wasAborted: boolean;
    readonly metadata: Readonly<Record<string, unknown>>;
  },
): MemberEnd {
  const { cause, err_message: message, retryable } = outcome;
  const end = { cause, message, samples, metadata, isRetryable: retryable };
  if (outcome.status === 'cancelled')
    return { ...end, status: 'aborted', fault: 'cancelled', cause: 'CANCELLED', reward: null };
  if (wasAborted)
    return { ...end, status: 'aborted', fault: 'infrastructure', cause: 'aborted', reward: null };
  const unusable = outcome.samples?.not_trainable ?? null;
  const isJudged = cause === null || outcome.trainable;
  if (isJudged && unusable !== null && samples.length === 0 && lostReasons.has(unusable.reason))
    return {
      ...{ ...end, status: 'failed', fault: 'infrastructure', reward: null, isRetryable: true },
      ...{ cause: unusable.reason, message: unusable.message },
    };
  if (isJudged) {
    const isTruncated = samples.some((sample) => sample.isTruncated);
    const fault = cause === null ? null : 'agent';
    return {
      ...end,
      status: isTruncated ? 'truncated' : 'completed',
      fault,
      reward: rewardOf(outcome),
    };
  }
  return { ...end, status: 'failed', fault: faultOf(cause), reward: null };
}

/** It was judged, and yet there is nothing to train on: another attempt may have it. */
const lostReasons: ReadonlySet<string> = new Set([
  ...['no-calls', 'no-ids', 'calls-missing', 'nothing-sampled', 'not-made'],
]);

/** Where something failed beside it the wire has no reward; the verdict stays what it was. */
function rewardOf({ reward, trainable, verdict }: OutcomeDocument): number | null {
  if (reward !== null || !trainable || verdict === null) return reward;
  const channels = Object.entries(verdict.rewards);
  const own = channels.find(([name]) => name === 'reward');
  return own?.[1] ?? (channels.length === 1 ? (channels[0]?.[1] ?? null) : null);
}

function faultOf(cause: string | null): MemberFault {
  if (cause === null || !(cause in errorRegistry)) return 'infrastructure';
  const { category } = errorRegistry[cause as ErrorCode];
  switch (category) {
    case 'input':
    case 'task':
      return 'task';
    case 'agent':
    case 'verifier':
    case 'cancelled':
    case 'infrastructure':
      return category;
    case 'internal':
      return 'infrastructure';
  }
}
