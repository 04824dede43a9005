/**
 * What `/run` says in `exit_status` of how a rollout ended: the one table. Words are Miles'; where it says `AgentError` of everything, a failure that is
 * not the agent's or the verifier's is `Error: EXCEPTION` here, which trainers abort instead of training on a reward of zero.
 */
import { errorRegistry, type ErrorCode, type ErrorRow } from '../core/error-registry.ts';
import type { RolloutOutcome } from '../wire/rollout/rollout-outcome.ts';

/** Statuses of requests that never became a trial. */
export const refusedStatuses = {
  identity: 'InvalidSessionServerId',
  instance: 'InvalidInstanceId',
  task: 'TaskNotFound',
} as const;

export const flushed = 'Flushed';
export const overTime = 'TimeLimitExceeded';

const byCode: Partial<Readonly<Record<ErrorCode, string>>> = {
  CANCELLED: flushed,
  SERVER_STOPPING: flushed,
  AGENT_TIMEOUT: overTime,
  WORKFLOW_TIMEOUT: overTime,
  VERIFIER_TIMEOUT: overTime,
  GRADER_TIMEOUT: overTime,
  ENVIRONMENT_START_TIMEOUT: overTime,
  CONTEXT_OVERFLOW: 'SequenceLengthLimitExceeded',
  TASK_NOT_FOUND: refusedStatuses.task,
};

/** `error`: named by its exception. */
const byCategory: Readonly<Record<ErrorRow['category'], string>> = {
  agent: 'AgentError',
  verifier: 'AgentError',
  cancelled: flushed,
  input: 'error',
  task: 'error',
  infrastructure: 'error',
  internal: 'error',
};

export interface EndFacts {
  readonly outcome: Pick<RolloutOutcome, 'cause' | 'trainable' | 'verdict' | 'reward'>;
  /** The budget that a model call of it was refused for; null = none. */
  readonly spentLimit: string | null;
}

/** The budget by which `max_seq_len` holds. */
export const sequenceLimit = 'max_call_tokens';

export function exitStatusOf({ outcome, spentLimit }: EndFacts): string {
  const { cause, verdict, trainable, reward } = outcome;
  const isAgents = cause === null || errorRegistry[cause].category === 'agent';
  if (spentLimit === sequenceLimit && isAgents && !isDoubtful(outcome))
    return 'SequenceLengthLimitExceeded';
  if (cause === null) return verdict !== null || reward !== null ? 'Submitted' : 'Unknown';
  const named = `Error: ${errorRegistry[cause].harborType}`;
  const status = byCode[cause] ?? byCategory[errorRegistry[cause].category];
  if (status === flushed) return status;
  // A verdict that must not be trained on: the machine failed as well.
  return status === 'error' || (verdict !== null && !trainable) ? named : status;
}

function isDoubtful({ cause, verdict, trainable }: EndFacts['outcome']): boolean {
  return cause !== null && verdict !== null && !trainable;
}
