/** How a rollout of the backend `local` ends, as values: results, messages of deadlines, categories. */
import { errorRegistry } from '../../core/error-registry.ts';
import type { ErrorCode, Phase } from '../../core/errors.ts';
import type {
  CallbackStatus,
  ErrorCategory,
  Sample,
} from '../../wire/rollout/callback-payloads.ts';
import type { Outcome } from '../../wire/outcome.ts';
import type { ThreadFailure, ThreadSample } from './thread-messages.ts';

export interface LocalFailure {
  readonly phase: Extract<Phase, 'queue' | 'agent' | 'verifier'>;
  readonly code: ErrorCode;
  readonly category: ErrorCategory;
  readonly message: string;
}

/** The part of a result that is known without the rollout's files and times. */
export interface LocalEnding {
  readonly status: CallbackStatus;
  readonly sample: Sample | null;
  readonly failure: LocalFailure | null;
  readonly outcome: Outcome;
}

export function workflowEnded(sample: Sample | null): LocalEnding {
  return { status: 'success', sample, failure: null, outcome: done(null) };
}

export function graded(sample: Sample): LocalEnding {
  return { status: 'success', sample, failure: null, outcome: done(sample) };
}

export function failed(failure: LocalFailure, sample: Sample | null): LocalEnding {
  const { code, phase, category } = failure;
  const isAuthors = category === 'validation_error';
  const retryable = errorRegistry[code].retryable && !isAuthors;
  const outcome = { stage: phase, cause: code, trainable: false, retryable, verdict: null };
  return { status: 'failure', sample, failure, outcome };
}

function done(sample: Sample | null): Outcome {
  const reward = sample?.reward ?? null;
  const isTrainable = reward !== null && sample?.isRemoved === false;
  const verdict = reward === null ? null : { rewards: { reward } };
  return { stage: 'done', cause: null, trainable: isTrainable, retryable: false, verdict };
}

/** Of which part of the user's code a failure is. */
export type UserPart = 'workflow' | 'grader';

const parts = {
  workflow: { phase: 'agent', failed: 'WORKFLOW_FAILED', timedOut: 'WORKFLOW_TIMEOUT' },
  grader: { phase: 'verifier', failed: 'GRADER_FAILED', timedOut: 'GRADER_TIMEOUT' },
} as const;

/** What the code threw keeps its own words. */
export function thrown(part: UserPart, { kind, category, message }: ThreadFailure): LocalFailure {
  const { phase, failed: code } = parts[part];
  return { phase, code: kind === 'answer' ? 'SAMPLE_INVALID' : code, category, message };
}

/** The code ended its worker, or something in the worker outside of its run did: `isForeign`, or the machine. */
export function workerLost(
  part: UserPart,
  why: { readonly message: string; readonly isForeign: boolean },
): LocalFailure {
  const { phase, failed: own } = parts[part];
  const code = why.isForeign ? 'RUNNER_FAILED' : own;
  return { phase, code, category: 'agent_error', message: `the ${part} ${why.message}` };
}

/** What is left for the workflow: the time in the queue is the controller's too. Infinity without a limit. */
export function workflowBudgetMs(agentTimeoutMs: number | null, queuedMs: number): number {
  return agentTimeoutMs === null ? Infinity : Math.max(0, agentTimeoutMs - queuedMs);
}

const tellFromMs = 100;

/** `queuedMs`: how much of the limit went by before the code began. */
export function overran(part: UserPart, limitMs: number, queuedMs = 0): LocalFailure {
  const { phase, timedOut: code } = parts[part];
  const queued = queuedMs < tellFromMs ? '' : ` (${(queuedMs / 1000).toFixed(1)}s of it queued)`;
  const message = `${part} exceeded its ${limitMs / 1000}s deadline${queued}`;
  return { phase, code, category: 'timeout', message };
}

export function notGraded(why: string): LocalFailure {
  const message = `not graded: ${why}`;
  return { phase: 'verifier', code: 'GRADER_FAILED', category: 'validation_error', message };
}

/** A worker's sample as the rest of the server knows it. Its messages are plain already: the copy for the archive may be the same. */
export function toSample(text: string, label: string | null): Sample {
  const { trajectoryMessages, ...sample } = JSON.parse(text) as ThreadSample;
  return {
    ...sample,
    label: sample.label ?? label,
    trajectoryMessages: trajectoryMessages === undefined ? sample.messages : trajectoryMessages,
  };
}
