import { errorRegistry } from '../core/error-registry.ts';
import type { Outcome } from '../wire/outcome.ts';
import type { Rewards } from '../verifier/reward-file.ts';
import { isRolloutError, type RolloutError } from '../core/errors.ts';

/**
 * How a trial, or one step of it, ended. A verdict makes a sample trainable unless the machine failed as well: an agent that ran out of time or
 * exited with an error has earned its reward; one whose sandbox misbehaved has not, nor has one that ran out of time because its model failed.
 */
export function outcomeOf(failure: RolloutError | null, rewards: Rewards | null): Outcome {
  const hasNumber = rewards !== null && Object.keys(rewards).length > 0;
  const verdict = rewards === null ? null : { rewards };
  if (failure === null)
    return { stage: 'done', cause: null, trainable: hasNumber, retryable: false, verdict };
  const cause = isRolloutError(failure.cause) ? failure.cause : null;
  return {
    stage: failure.phase,
    cause: failure.code,
    trainable: hasNumber && isAgents(failure) && (cause === null || isAgents(cause)),
    retryable: failure.retryable,
    verdict,
  };
}

function isAgents({ code }: RolloutError): boolean {
  return errorRegistry[code].category === 'agent';
}
