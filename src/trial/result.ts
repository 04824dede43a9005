/** Makes `result.json` of what a trial wrote down: Harbor's fields as Harbor writes them, ours under `slipway`. */
import { pathToFileURL } from 'node:url';
import type { RolloutError } from '../core/errors.ts';
import type { EnvironmentProvider, KillReceipt } from '../environments/environment.ts';
import { toHarborTime } from '../wire/harbor/dump.ts';
import type {
  Failure,
  KillRecord,
  SlipwayRecord,
  StepRecord,
} from '../wire/harbor/slipway-record.ts';
import type { TrialConfig } from '../wire/harbor/trial-config.ts';
import type {
  AgentInfo,
  ExceptionInfo,
  StepResult,
  TaskId,
  TrialResult,
  VerifierResult,
} from '../wire/harbor/trial-result.ts';
import { outcomeOf } from './outcome.ts';
import { combineRewards } from './step-gate.ts';
import type { TrialPlan } from './trial-plan.ts';
import type { NotedFailure, RoundRecord, TrialRecord } from './trial-record.ts';
import type { Rewards } from '../verifier/reward-file.ts';

export interface ResultFacts {
  readonly id: string;
  readonly config: TrialConfig;
  readonly dir: string;
  readonly taskName: string;
  readonly taskId: TaskId;
  readonly source: string | null;
  /** Empty when the task was never read. */
  readonly checksum: string;
  readonly agentInfo: AgentInfo;
  /** null when the trial failed before it could be planned. */
  readonly plan: TrialPlan | null;
  readonly provider: EnvironmentProvider;
  /** Name of the agent's sandbox; null = none was made. */
  readonly sandbox: string | null;
  readonly record: TrialRecord;
}

export function toTrialResult(facts: ResultFacts): TrialResult {
  const { record, plan, config } = facts;
  const isMultiStep = (plan?.task.steps.length ?? 0) > 0;
  const only = isMultiStep ? null : (record.rounds[0]?.record ?? null);
  const rewards = isMultiStep ? trialRewards(facts) : (only?.rewards ?? null);
  return {
    id: facts.id,
    task_name: facts.taskName,
    trial_name: config.trial_name,
    trial_uri: pathToFileURL(facts.dir).href,
    task_id: facts.taskId,
    source: facts.source,
    task_checksum: facts.checksum,
    config,
    agent_info: record.source?.agentInfo ?? facts.agentInfo,
    agent_result: record.source?.agentResult ?? only?.agentResult ?? null,
    verifier_result: toVerifierResult(rewards),
    verifier_environment_mode: isMultiStep ? null : (plan?.rounds[0]?.verifier?.mode ?? null),
    exception_info: toExceptionInfo(record.failure),
    started_at: toHarborTime(record.startedAt),
    finished_at: record.finishedAt === null ? null : toHarborTime(record.finishedAt),
    environment_setup: record.environmentSetup,
    agent_setup: record.agentSetup,
    agent_execution: only?.agentExecution ?? null,
    verifier: only?.verifierTiming ?? null,
    step_results: isMultiStep
      ? record.rounds.map(({ step, record: round }) => toStepResult(step ?? '', round))
      : null,
    slipway: toSlipwayRecord(facts, rewards),
  };
}

function trialRewards({ record, plan }: ResultFacts): Rewards | null {
  return combineRewards(
    record.rounds.map(({ record: round }) => round.rewards),
    plan?.task.multiStepRewardStrategy ?? null,
  );
}

function toStepResult(step: string, round: RoundRecord): StepResult {
  return {
    step_name: step,
    agent_result: round.agentResult,
    verifier_result: toVerifierResult(round.rewards),
    exception_info: toExceptionInfo(round.failure),
    agent_execution: round.agentExecution,
    verifier: round.verifierTiming,
  };
}

function toVerifierResult(rewards: Rewards | null): VerifierResult | null {
  return rewards === null ? null : { rewards: { ...rewards } };
}

/** Harbor's names; in place of a program's stack the stages that led there. */
function toExceptionInfo(failure: NotedFailure | null): ExceptionInfo | null {
  if (failure === null) return null;
  const { error, at } = failure;
  return {
    exception_type: error.exceptionType,
    exception_message: error.message,
    exception_traceback: explain(failure),
    occurred_at: toHarborTime(at),
  };
}

/** The text of `exception.txt`: what happened, what to do, where, and what the machine said. */
export function explain({ error, trail }: NotedFailure): string {
  const lines = [error.describe()];
  if (trail.length > 0) lines.push(`Stages: ${trail.join(' → ')}`);
  lines.push(...causes(error).map((text) => `Caused by: ${text}`));
  if (error.detail !== null) lines.push('', error.detail);
  return lines.join('\n');
}

function causes(error: RolloutError): readonly string[] {
  const texts: string[] = [];
  for (let cause = error.cause; cause instanceof Error && texts.length < 5; cause = cause.cause)
    if (cause.message !== '' && !error.message.includes(cause.message)) texts.push(cause.message);
  return texts;
}

function toSlipwayRecord(facts: ResultFacts, rewards: Rewards | null): SlipwayRecord {
  const { record, provider, sandbox } = facts;
  const decisive = record.failure ?? firstStepFailure(record);
  const last = record.rounds.at(-1)?.record ?? null;
  return {
    schema_version: 1,
    outcome: outcomeOf(decisive?.error ?? null, rewards),
    failure: toFailure(decisive?.error ?? null),
    environment:
      sandbox === null ? null : { kind: provider.kind, isolation: provider.isolation, sandbox },
    phase_times: record.phaseTimes,
    agent_stop: toKillRecord(last?.agentStop ?? null),
    verifier_exit_code: last?.verifierExitCode ?? null,
    cancellation: record.cancellation,
    destroyed: record.destroyed === null ? null : [...record.destroyed].sort(),
    steps: record.rounds.flatMap(({ step, record: round }) =>
      step === null ? [] : [toStepRecord(step, round)],
    ),
    warnings: record.warnings,
  };
}

/** Harbor hides a step's failure from the trial; here the trial's own outcome names it. */
function firstStepFailure(record: TrialRecord): NotedFailure | null {
  return record.rounds.find(({ record: round }) => round.failure !== null)?.record.failure ?? null;
}

function toStepRecord(name: string, round: RoundRecord): StepRecord {
  const error = round.failure?.error ?? null;
  return {
    name,
    outcome: outcomeOf(error, round.rewards),
    failure: toFailure(error),
    agent_stop: toKillRecord(round.agentStop),
    verifier_exit_code: round.verifierExitCode,
  };
}

function toFailure(error: RolloutError | null): Failure | null {
  if (error === null) return null;
  const { code, phase, message, field, remedy, detail, retryable } = error;
  return { code, phase, message, field, remedy, detail, retryable };
}

function toKillRecord(receipt: KillReceipt | null): KillRecord | null {
  if (receipt === null) return null;
  return {
    killed: receipt.killed,
    confirmed_by: [...receipt.confirmedBy],
    duration_ms: Math.round(receipt.durationMs),
  };
}
