/** How rollouts end, as values: pure. */
import type { ExecutionResult } from '../backends/execution-backend.ts';
import { errorRegistry, type ErrorCode } from '../core/error-registry.ts';
import { RolloutError, type Phase } from '../core/errors.ts';
import type { ErrorCategory } from '../wire/rollout/callback-payloads.ts';
import type { RolloutOutcome } from '../wire/rollout/rollout-outcome.ts';
import type { RouteActivity } from '../wire/rollout/route-activity.ts';

/** What a controller is told of a defect: its receivers know this text. */
const defectMessage = 'Internal server error';

export function outcomeOf(result: ExecutionResult): RolloutOutcome {
  const { status, sample, errMessage, errCategory, outcome } = result;
  const isGraded = status === 'success' && sample !== null && !sample.isRemoved;
  return { ...outcome, status, reward: isGraded ? sample.reward : null, errMessage, errCategory };
}

/** An agent that was refused its model may end in any way; its diagnostics say what it ran into. */
export function withSpentBudget(
  result: ExecutionResult,
  spent: RouteActivity['spent'],
): ExecutionResult {
  if (spent === null) return result;
  const { limit, max, used, refused } = spent;
  const code: ErrorCode = 'BUDGET_EXHAUSTED';
  const model_budget = { code, limit, max, used, refused };
  return { ...result, diagnostics: { ...result.diagnostics, model_budget } };
}

/** The end of a rollout that its backend did not bring about. */
export interface OwnFailure {
  readonly cause: ErrorCode;
  readonly stage: Phase;
  readonly errMessage: string;
  readonly errCategory: ErrorCategory | null;
  readonly retryable: boolean;
}

export function queueTimeout(waitMs: number): OwnFailure {
  return {
    cause: 'QUEUE_TIMEOUT',
    stage: 'queue',
    errMessage: `the rollout waited for a running place longer than its limit of ${waitMs / 1000}s and did not start`,
    errCategory: 'timeout',
    retryable: errorRegistry.QUEUE_TIMEOUT.retryable,
  };
}

export function interrupted(stage: Phase): OwnFailure {
  return {
    cause: 'ROLLOUT_INTERRUPTED',
    stage,
    errMessage:
      'the rollout server died while the rollout ran; its agent had begun, so it was not run again',
    errCategory: 'agent_error',
    retryable: errorRegistry.ROLLOUT_INTERRUPTED.retryable,
  };
}

export function stopping(stage: Phase): OwnFailure {
  return {
    cause: 'SERVER_STOPPING',
    stage,
    errMessage: 'the rollout server was shut down while the rollout ran',
    errCategory: 'agent_error',
    retryable: errorRegistry.SERVER_STOPPING.retryable,
  };
}

/** What was thrown where nothing should be. Messages of defects stay inside: they may hold anything. */
export function failureOf(error: unknown, stage: Phase): OwnFailure {
  if (!(error instanceof RolloutError) || error.code === 'INTERNAL')
    return {
      cause: 'INTERNAL',
      stage,
      errMessage: defectMessage,
      errCategory: null,
      retryable: errorRegistry.INTERNAL.retryable,
    };
  const { category } = errorRegistry[error.code];
  return {
    cause: error.code,
    stage: error.phase,
    errMessage: error.message,
    errCategory: category === 'input' || category === 'task' ? 'validation_error' : 'agent_error',
    retryable: error.retryable,
  };
}

export function failedOutcome(failure: OwnFailure): RolloutOutcome {
  const { cause, stage, errMessage, errCategory, retryable } = failure;
  return {
    ...{ status: 'failure', reward: null, errMessage, errCategory },
    ...{ stage, cause, trainable: false, retryable, verdict: null },
  };
}

export function cancelledOutcome(stage: Phase): RolloutOutcome {
  return {
    ...{ status: 'cancelled', reward: null, errMessage: 'cancelled by the controller' },
    ...{ errCategory: null, stage, cause: 'CANCELLED' },
    ...{ trainable: false, retryable: false, verdict: null },
  };
}
