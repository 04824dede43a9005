/**
 * What a trial says as results of a rollout. A number is the reward only where the verifier ran to its end and nothing of the trial failed, a step
 * included; the verdict stays in the outcome in every case.
 */
import { errorRegistry } from '../../core/error-registry.ts';
import { attribute, type Phase, type RolloutError } from '../../core/errors.ts';
import { outcomeOf } from '../../trial/outcome.ts';
import type { SlipwayRecord } from '../../wire/harbor/slipway-record.ts';
import type { AgentResult, TimingInfo, TrialResult } from '../../wire/harbor/trial-result.ts';
import type { Outcome } from '../../wire/outcome.ts';
import type { ErrorCategory, Sample } from '../../wire/rollout/callback-payloads.ts';
import type { ExecutionResult } from '../execution-backend.ts';
import { interim } from '../shared/interim-diagnostics.ts';

/** The parts of a result that the trial's record decides; files and document come from its folder. */
export type NativeEnding = Omit<ExecutionResult, 'trajectory' | 'files'>;

export interface Setting {
  readonly label: string | null;
  readonly rewardKey: string;
  /** Seconds until the trial began. */
  readonly setupSec: number;
}

/** The workflow's result while the trial still runs: the agent has stopped. `failure` is what the trial has failed with by then. */
export function agentStopped(
  failure: RolloutError | null,
  { label, setupSec }: Setting,
): NativeEnding {
  const timings = { setup: setupSec };
  if (failure !== null)
    return failed(
      failure,
      { outcome: outcomeOf(failure, null), category: 'agent_error', timings },
      emptySample(label),
    );
  const sample = emptySample(label);
  return interim(succeeded(sample, outcomeOf(null, null), { phase: 'verification', timings }));
}

/** No trial could be made. */
export function setUpFailed(error: unknown, setupSec: number): NativeEnding {
  const failure = attribute(error, 'INTERNAL', 'resolve', 'the trial could not be made');
  const outcome = outcomeOf(failure, null);
  const category = setUpCategory(failure);
  return failed(failure, { outcome, category, timings: { setup: setupSec } }, null);
}

/** The agent's time was over before anything began. */
export function overBefore(failure: RolloutError): NativeEnding {
  const outcome = outcomeOf(failure, null);
  return failed(failure, { outcome, category: 'agent_error', timings: {} }, null);
}

export interface TrialEnding {
  /** As the agent's part alone: what the completion says if it has not been said yet. */
  readonly workflow: NativeEnding;
  readonly final: NativeEnding;
  readonly warnings: readonly string[];
}

export function trialEnded(result: TrialResult, setting: Setting): TrialEnding {
  const { label, setupSec } = setting;
  const record = result.slipway;
  if (record === null) throw new TypeError('a trial of ours has its own record');
  const timings = { setup: setupSec, ...timingsOf(result) };
  const sample = { ...emptySample(label), metrics: metricsOf(result) };
  const failure = failureOf(record);
  if (failure !== null) {
    const isSetUp = failure.phase === 'config' || failure.phase === 'resolve';
    const category = isSetUp ? setUpCategory(failure) : 'agent_error';
    const ending = failed(
      failure,
      { outcome: failure.outcome, category, timings },
      isSetUp ? null : sample,
    );
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

/** The trial's failure, or the first of its steps. */
function failureOf(record: SlipwayRecord): (Failure & { readonly outcome: Outcome }) | null {
  if (record.failure !== null) return { ...record.failure, outcome: record.outcome };
  const step = record.steps.find(({ failure }) => failure !== null);
  if (step?.failure == null) return null;
  const { verdict } = record.outcome;
  return { ...step.failure, outcome: { ...step.outcome, verdict } };
}

type Failure = Pick<RolloutError, 'code' | 'phase' | 'message' | 'retryable'>;
type Timings = Readonly<Record<string, number>>;

function setUpCategory({ code }: Pick<Failure, 'code'>): ErrorCategory {
  const { category } = errorRegistry[code];
  return category === 'input' || category === 'task' ? 'validation_error' : 'agent_error';
}

function failed(
  { code, phase, message }: Pick<Failure, 'code' | 'phase' | 'message'>,
  about: { readonly outcome: Outcome; readonly category: ErrorCategory; readonly timings: Timings },
  sample: Sample | null,
): NativeEnding {
  const { outcome, category, timings } = about;
  return {
    status: 'failure',
    sample,
    errMessage: message === '' ? 'Trial failed before completion' : message,
    errCategory: category,
    outcome,
    diagnostics: {
      backend: 'native_harbor',
      phase: code === 'CANCELLED' ? 'cancelled' : phases[phase],
      harbor_exception_type: errorRegistry[code].harborType,
      category,
      timings_sec: timings,
      outcome,
    },
  };
}

function succeeded(
  sample: Sample,
  outcome: Outcome,
  { phase, timings }: { readonly phase: string; readonly timings: Timings },
): NativeEnding {
  return {
    status: 'success',
    sample,
    errMessage: null,
    errCategory: null,
    outcome,
    diagnostics: {
      backend: 'native_harbor',
      phase,
      harbor_exception_type: null,
      category: null,
      timings_sec: timings,
      outcome,
    },
  };
}

function unrewarded(about: {
  readonly sample: Sample;
  readonly outcome: Outcome;
  readonly timings: Timings;
  readonly rewardKey: string;
}): NativeEnding {
  const message = `the verifier gave no reward: there is no channel ${about.rewardKey}`;
  const outcome: Outcome = {
    ...about.outcome,
    stage: 'verifier',
    cause: 'REWARD_MISSING',
    trainable: false,
  };
  const failure = failed(
    { code: 'REWARD_MISSING', phase: 'verifier', message },
    { outcome, category: 'validation_error', timings: about.timings },
    about.sample,
  );
  return { ...failure, diagnostics: { ...failure.diagnostics, phase: 'grading' } };
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

const phases: Readonly<Record<Phase, string>> = {
  config: 'setup',
  resolve: 'setup',
  queue: 'trial_setup',
  environment: 'environment_setup',
  'agent-setup': 'agent_setup',
  agent: 'agent',
  'model-call': 'agent',
  'agent-stop': 'agent',
  collect: 'verification',
  verifier: 'verification',
  cleanup: 'verification',
  callback: 'verification',
  server: 'verification',
};

function timingsOf(result: TrialResult): Timings {
  const { started_at, finished_at } = result;
  const steps = result.step_results ?? [];
  const all = (field: 'agent_execution' | 'verifier'): number | null => {
    const own = [result, ...steps].flatMap((part) => spanOf(part[field]) ?? []);
    return own.length === 0 ? null : own.reduce((total, value) => total + value, 0);
  };
  const named = {
    environment_setup: spanOf(result.environment_setup),
    agent_setup: spanOf(result.agent_setup),
    agent: all('agent_execution'),
    verification: all('verifier'),
    trial: spanOf({ started_at, finished_at }),
  };
  return Object.fromEntries(
    Object.entries(named).filter((entry): entry is [string, number] => entry[1] !== null),
  );
}

/** Seconds, never negative; null = not both ends are known. */
function spanOf(timing: TimingInfo | null): number | null {
  const from = Date.parse(timing?.started_at ?? '');
  const to = Date.parse(timing?.finished_at ?? '');
  const seconds = Math.max(0, to - from) / 1000;
  return Number.isFinite(seconds) ? seconds : null;
}
