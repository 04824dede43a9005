/**
 * What a trial says as results of a rollout whose sample a workflow or an agent left. The channel `reward` is the reward, and no other; a reward that the
 * sample brought along counts where the verifier has none.
 */
import type { ErrorCode } from '../../core/errors.ts';
import type { ErrorCategory, Sample } from '../../wire/rollout/callback-payloads.ts';
import type { ExecutionResult } from '../execution-backend.ts';
import { trialDiagnostics, type Seconds } from '../shared/trial-diagnostics.ts';
import type { GraderEnd } from './container-sample.ts';
import type { StagedTask } from './staged-task.ts';

export interface Ending {
  readonly label: string | null;
  readonly wantsGrade: boolean;
  readonly rewardSource: StagedTask['rewardSource'];
  /** undefined = the workflow did not come to its end; null = it left none. */
  readonly sample: Sample | null | undefined;
  readonly grader: GraderEnd | null;
}

/** The result of the agent's part. */
export function workflowResult(trial: ExecutionResult, ending: Ending): ExecutionResult {
  const { sample } = ending;
  const own = { ...trial, diagnostics: ours(trial.diagnostics) };
  return trial.status === 'success' && sample !== undefined
    ? { ...own, sample: sample && labelled(sample, trial, ending) }
    : own;
}

export function finalResult(trial: ExecutionResult, ending: Ending): ExecutionResult {
  const result = workflowResult(trial, ending);
  const { sample } = ending;
  // Something failed before there was anything to grade.
  if (sample === undefined) return result;
  if (!isGraded(trial))
    return sample === null ? result : { ...result, sample: labelled(sample, trial, ending) };
  if (sample === null)
    return unusable(result, {
      code: 'SAMPLE_INVALID',
      message: 'the workflow left no sample',
      sample: null,
    });
  const own = labelled(sample, trial, ending);
  if (ending.rewardSource === 'none' && !ending.wantsGrade)
    return succeeded(result, { ...own, reward: null });
  const { grader } = ending;
  if (grader?.failure !== undefined)
    return unusable(result, {
      ...{ code: 'GRADER_FAILED', message: grader.failure.message, sample: own },
      category: 'agent_error',
    });
  const graded =
    grader === null
      ? own
      : labelled({ ...sample, ...grader.graded, label: own.label }, trial, ending);
  const reward = trial.outcome.verdict?.rewards['reward'] ?? graded.reward;
  if (reward !== null || graded.isRemoved) return succeeded(result, { ...graded, reward });
  return unusable(result, {
    code: 'REWARD_MISSING',
    message:
      ending.rewardSource === 'none'
        ? 'there is no source of a reward: the task has no tests, and no grader is configured'
        : 'the verifier gave no reward: there is no channel reward',
    sample: own,
  });
}

/** The verifier ended, or failed for want of a reward only: what the sample brings may stand in. */
function isGraded({ status, outcome }: ExecutionResult): boolean {
  return status === 'success' || outcome.cause === 'REWARD_MISSING';
}

function labelled(sample: Sample, trial: ExecutionResult, { label }: Ending): Sample {
  return {
    ...sample,
    label: sample.label ?? label,
    metrics: { ...trial.sample?.metrics, ...sample.metrics },
  };
}

function succeeded(result: ExecutionResult, sample: Sample): ExecutionResult {
  const outcome = {
    ...result.outcome,
    ...{ stage: 'done' as const, cause: null, retryable: false },
    trainable: sample.reward !== null && !sample.isRemoved,
  };
  return {
    ...result,
    ...{ status: 'success', sample, errMessage: null, errCategory: null, outcome },
    diagnostics: told(result, { phase: 'verification', code: null, category: null, outcome }),
  };
}

function unusable(
  result: ExecutionResult,
  why: {
    readonly code: ErrorCode;
    readonly message: string;
    readonly sample: Sample | null;
    readonly category?: ErrorCategory;
  },
): ExecutionResult {
  const { code, message, sample, category = 'validation_error' } = why;
  const outcome = {
    ...result.outcome,
    ...{ stage: 'verifier' as const, cause: code, trainable: false },
  };
  return {
    ...result,
    ...{ status: 'failure', sample: sample && { ...sample, reward: null }, outcome },
    ...{ errMessage: message, errCategory: category },
    diagnostics: told(result, { phase: 'grading', code, category, outcome }),
  };
}

type Told = Pick<Parameters<typeof trialDiagnostics>[0], 'phase' | 'code' | 'category' | 'outcome'>;

const backend = 'harbor';

function told({ diagnostics }: ExecutionResult, about: Told): Readonly<Record<string, unknown>> {
  const timings = (diagnostics?.['timings_sec'] ?? {}) as Seconds;
  return trialDiagnostics({ ...about, backend, timings });
}

function ours(diagnostics: ExecutionResult['diagnostics']): ExecutionResult['diagnostics'] {
  return diagnostics && { ...diagnostics, backend };
}
