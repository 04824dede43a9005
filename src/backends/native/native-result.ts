/**
 * What a trial says as results of a rollout. A number is the reward only where the verifier ran to its end and nothing of the trial failed, a step
 * included; the verdict stays in the outcome in every case.
 */
import { errorRegistry } from '../../core/error-registry.ts';
import { attribute, type RolloutError } from '../../core/errors.ts';
import { outcomeOf } from '../../trial/outcome.ts';
import type { TrialTimings } from '../../trial/trial.ts';
import type { SlipwayRecord } from '../../wire/harbor/slipway-record.ts';
import type { AgentResult, TrialResult } from '../../wire/harbor/trial-result.ts';
import type { Outcome } from '../../wire/outcome.ts';
import type { ErrorCategory, Sample } from '../../wire/rollout/callback-payloads.ts';
import type { ExecutionResult } from '../execution-backend.ts';
import { interim } from '../shared/interim-diagnostics.ts';
import {
  timingsOf,
  trialDiagnostics,
  type DiagnosticPhase,
  type Seconds,
  type TrialPhases,
} from '../shared/trial-diagnostics.ts';

/** The parts of a result that the trial's record decides; files and document come from its folder. */
export type NativeEnding = Omit<ExecutionResult, 'trajectory' | 'files'>;

export interface Setting {
  readonly label: string | null;
  readonly rewardKey: string;
  readonly phases: TrialPhases;
  /** Seconds until the trial began. */
  readonly setupSec: number;
}

/**
 * The workflow's result while the trial still runs: the agent has stopped. `failure` is what the trial has failed with by then. What is known then is
 * what the end will say; the outcome is not, because a verdict follows.
 */
export function agentStopped(
  failure: RolloutError | null,
  times: TrialTimings,
  { label, setupSec, phases }: Setting,
): NativeEnding {
  const timings = timingsOf(times, setupSec);
  const sample = emptySample(label);
  if (failure === null)
    return interim(succeeded(sample, outcomeOf(null, null), { phase: 'verification', timings }));
  const about = {
    outcome: outcomeOf(failure, null),
    category: 'agent_error' as const,
    phase: phases.of(failure, null),
    timings,
  };
  return interim(failed(failure, about, sample));
}

/** No trial could be made, or its folder could not be written. */
export function setUpFailed(
  error: unknown,
  { phase, setupSec }: { readonly phase: DiagnosticPhase; readonly setupSec: number },
): NativeEnding {
  const failure = attribute(error, 'INTERNAL', 'resolve', 'the trial could not be made');
  const outcome = outcomeOf(failure, null);
  const category = setUpCategory(failure);
  const timings = timingsOf(null, setupSec);
  return failed(failure, { outcome, category, phase, timings }, null);
}

/** The agent's time was over before anything began. */
export function overBefore(failure: RolloutError): NativeEnding {
  const outcome = outcomeOf(failure, null);
  const about = { outcome, category: 'agent_error', phase: 'agent', timings: {} } as const;
  return failed(failure, about, null);
}

export interface TrialEnding {
  /** As the agent's part alone: what the completion says if it has not been said yet. */
  readonly workflow: NativeEnding;
  readonly final: NativeEnding;
  readonly warnings: readonly string[];
}

export function trialEnded(result: TrialResult, setting: Setting): TrialEnding {
  const { label, setupSec, phases } = setting;
  const record = result.slipway;
  if (record === null) throw new TypeError('a trial of ours has its own record');
  const timings = timingsOf(result, setupSec);
  const sample = { ...emptySample(label), metrics: metricsOf(result) };
  const failure = failureOf(record);
  if (failure !== null) {
    const isSetUp = failure.phase === 'config' || failure.phase === 'resolve';
    const about = {
      outcome: failure.outcome,
      category: isSetUp ? setUpCategory(failure) : ('agent_error' as const),
      phase: phases.of(failure, failure.step),
      timings,
      exceptionType: exceptionOf(result, failure.step),
    };
    const ending = failed(failure, about, isSetUp ? null : sample);
    return { workflow: ending, final: ending, warnings: [] };
  }
  const { outcome } = record;
  const workflow = succeeded(sample, outcome, { phase: 'verification', timings });
  const { reward, warnings } = rewardOf(result, setting.rewardKey);
  const final =
    reward === null
      ? unrewarded({ sample, outcome, timings, rewardKey: setting.rewardKey })
      : succeeded({ ...sample, reward }, outcome, { phase: 'verification', timings });
  return { workflow, final, warnings };
}

function exceptionOf(result: TrialResult, step: string | null): string | null {
  const own = result.step_results?.find(({ step_name: name }) => name === step);
  return (own ?? result).exception_info?.exception_type ?? null;
}

type StepFailure = Failure & { readonly outcome: Outcome; readonly step: string | null };

/** The trial's failure, which may be that of a step. */
function failureOf(record: SlipwayRecord): StepFailure | null {
  const { failure, outcome, steps } = record;
  const first = steps.find((step) => step.failure !== null) ?? null;
  if (failure === null)
    return first?.failure == null
      ? null
      : {
          ...first.failure,
          outcome: { ...first.outcome, verdict: outcome.verdict },
          step: first.name,
        };
  const own = steps.find(
    ({ failure: of }) => of?.code === failure.code && of.message === failure.message,
  );
  return { ...failure, outcome, step: own?.name ?? null };
}

type Failure = Pick<RolloutError, 'code' | 'phase' | 'message' | 'retryable'>;

function setUpCategory({ code }: Pick<Failure, 'code'>): ErrorCategory {
  const { category } = errorRegistry[code];
  return category === 'input' || category === 'task' ? 'validation_error' : 'agent_error';
}

/** As `/health` names it. */
const backend = 'native_harbor';

function failed(
  { code, message }: Pick<Failure, 'code' | 'message'>,
  about: {
    readonly outcome: Outcome;
    readonly category: ErrorCategory;
    readonly phase: DiagnosticPhase;
    readonly timings: Seconds;
    readonly exceptionType?: string | null;
  },
  sample: Sample | null,
): NativeEnding {
  return {
    status: 'failure',
    sample,
    errMessage: message === '' ? 'Trial failed before completion' : message,
    errCategory: about.category,
    outcome: about.outcome,
    diagnostics: trialDiagnostics({ ...about, backend, code }),
  };
}

function succeeded(
  sample: Sample,
  outcome: Outcome,
  about: { readonly phase: DiagnosticPhase; readonly timings: Seconds },
): NativeEnding {
  return {
    status: 'success',
    sample,
    errMessage: null,
    errCategory: null,
    outcome,
    diagnostics: trialDiagnostics({ ...about, backend, outcome, code: null, category: null }),
  };
}

function unrewarded(about: {
  readonly sample: Sample;
  readonly outcome: Outcome;
  readonly timings: Seconds;
  readonly rewardKey: string;
}): NativeEnding {
  const { sample, timings, rewardKey } = about;
  const message = `the verifier gave no reward: there is no channel ${rewardKey}`;
  const code = 'REWARD_MISSING';
  const outcome: Outcome = {
    ...about.outcome,
    stage: 'verifier',
    cause: code,
    trainable: false,
  };
  const category = 'validation_error';
  return failed({ code, message }, { outcome, category, phase: 'grading', timings }, sample);
}

/** The named channel of the trial, or of the first step that has any; else the only channel. */
function rewardOf(
  result: TrialResult,
  rewardKey: string,
): { readonly reward: number | null; readonly warnings: readonly string[] } {
  const maps = [result, ...(result.step_results ?? [])].map(
    ({ verifier_result: verdict }) => verdict?.rewards ?? {},
  );
  const rewards = maps.find((map) => Object.keys(map).length > 0) ?? {};
  const channels = Object.keys(rewards);
  const named = rewards[rewardKey] ?? (channels.length === 1 ? rewards[channels[0] ?? ''] : null);
  if (named !== undefined && named !== null && Number.isFinite(named))
    return { reward: named, warnings: [] };
  const warning = `no channel ${rewardKey} among the rewards: ${channels.join(', ')}`;
  return { reward: null, warnings: channels.length === 0 ? [] : [warning] };
}

function emptySample(label: string | null): Sample {
  return {
    messages: [],
    trajectoryMessages: null,
    label,
    reward: null,
    isRemoved: false,
    metrics: {},
    extraFields: {},
  };
}

/** Tokens and costs of all rounds; what no round tells is left out. */
function metricsOf(result: TrialResult): Readonly<Record<string, number>> {
  const parts = [result, ...(result.step_results ?? [])].flatMap(({ agent_result: part }) =>
    part === null ? [] : [part],
  );
  const sum = (field: keyof AgentResult): number | null => {
    const numbers = parts.map((part) => part[field]).filter((value) => typeof value === 'number');
    return numbers.length === 0 ? null : numbers.reduce((total, value) => total + value, 0);
  };
  const totals = {
    input_tokens: sum('n_input_tokens'),
    cached_tokens: sum('n_cache_tokens'),
    output_tokens: sum('n_output_tokens'),
    cost_usd: sum('cost_usd'),
  };
  return Object.fromEntries(
    Object.entries(totals).filter((entry): entry is [string, number] => entry[1] !== null),
  );
}
