/** A finished trial as statistics, tables and comparisons need it; made once from `result.json`, ours or Harbor's. */
import { errorRegistry, type ErrorCode, type ErrorRow } from '../core/error-registry.ts';
import { laxBoolean } from '../wire/harbor/lax.ts';
import type { PhaseTimes } from '../wire/harbor/slipway-record.ts';
import type { AgentResult, TrialResult } from '../wire/harbor/trial-result.ts';
import type { RewardMap } from './metrics.ts';

export type FailureCategory = ErrorRow['category'];

export interface TrialFailure {
  /** Harbor's name for it. */
  readonly exceptionType: string;
  /** null when another program wrote the result. */
  readonly code: ErrorCode | null;
  readonly category: FailureCategory;
  readonly phase: string | null;
  readonly message: string;
  readonly field: string | null;
  readonly remedy: string | null;
}

export interface TokenTotals {
  readonly input: number | null;
  readonly cache: number | null;
  readonly output: number | null;
  readonly costUsd: number | null;
}

export interface TrialSummary {
  readonly trialName: string;
  readonly taskName: string;
  /** Dataset; null = named on its own. */
  readonly source: string | null;
  readonly agentName: string;
  /** Without the provider. */
  readonly modelName: string | null;
  readonly rewards: RewardMap | null;
  readonly failure: TrialFailure | null;
  readonly tokens: TokenTotals;
  /** Calls of a model that the agent took its next step from; null = it does not say. */
  readonly turns: number | null;
  /** It was asked for token ids with log-probabilities (`collect_rollout_details`), the model was called, and there are none. */
  readonly lacksTokenIds: boolean;
  readonly phaseTimes: PhaseTimes;
  readonly startedAt: string | null;
}

/** Whether a trial enters an average: with its rewards, as 0 because its agent failed, or not at all. */
export type Standing = 'scored' | 'agent-failed' | 'uncounted';

export function standingOf({ rewards, failure }: TrialSummary): Standing {
  if (rewards !== null)
    return failure?.category === 'infrastructure' && failure.phase !== 'cleanup'
      ? 'uncounted'
      : 'scored';
  return failure?.category === 'agent' ? 'agent-failed' : 'uncounted';
}

export function summarize(result: TrialResult): TrialSummary {
  return {
    trialName: result.trial_name,
    taskName: result.task_name,
    source: result.source,
    agentName: result.agent_info.name,
    modelName: result.agent_info.model_info?.name ?? null,
    rewards: result.verifier_result?.rewards ?? null,
    failure: failureOf(result),
    tokens: tokensOf(result),
    turns: sumKnown(agentResultsOf(result).map(turnsOf)),
    lacksTokenIds: lacksTokenIds(result),
    phaseTimes: result.slipway?.phase_times ?? {},
    startedAt: result.started_at,
  };
}

/** What filters may call a failure: Harbor's exception type and our code. */
export function namesOf({ exceptionType, code }: TrialFailure): string[] {
  return code === null ? [exceptionType] : [exceptionType, code];
}

function failureOf(result: TrialResult): TrialFailure | null {
  const own = result.slipway?.failure ?? null;
  const exceptionType = result.exception_info?.exception_type;
  if (own !== null)
    return {
      exceptionType: exceptionType ?? errorRegistry[own.code].harborType,
      code: own.code,
      category: errorRegistry[own.code].category,
      phase: own.phase,
      message: own.message,
      field: own.field,
      remedy: own.remedy,
    };
  if (exceptionType === undefined) return null;
  return {
    exceptionType,
    code: null,
    category: categoryOfType(exceptionType),
    phase: null,
    message: result.exception_info?.exception_message ?? '',
    field: null,
    remedy: null,
  };
}

/** The category of a failure that Harbor wrote: that of the first code with this type; agent failures of the field are agent's. */
function categoryOfType(exceptionType: string): FailureCategory {
  if (agentTypes.has(exceptionType)) return 'agent';
  const row = Object.values(errorRegistry).find(({ harborType }) => harborType === exceptionType);
  return row?.category ?? 'infrastructure';
}

const agentTypes: ReadonlySet<string> = new Set([
  'AgentSetupTimeoutError',
  'AgentTimeoutError',
  'NonZeroAgentExitCodeError',
  'AgentSafetyRefusalError',
  'ContextLengthExceededError',
  'OutputLengthExceededError',
]);

function tokensOf(result: TrialResult): TokenTotals {
  const parts = agentResultsOf(result);
  const sum = (field: 'n_input_tokens' | 'n_cache_tokens' | 'n_output_tokens' | 'cost_usd') =>
    sumKnown(parts.map((part) => part[field]));
  return {
    input: sum('n_input_tokens'),
    cache: sum('n_cache_tokens'),
    output: sum('n_output_tokens'),
    costUsd: sum('cost_usd'),
  };
}

function agentResultsOf(result: TrialResult): AgentResult[] {
  if (result.agent_result !== null) return [result.agent_result];
  return (result.step_results ?? []).flatMap(({ agent_result }) => agent_result ?? []);
}

/** `n_episodes` is Terminus-2's word for it. */
function turnsOf({ metadata }: AgentResult): number | null {
  const turns = metadata?.['n_episodes'];
  return typeof turns === 'number' && Number.isFinite(turns) ? turns : null;
}

/** An endpoint that knows nothing of ids leaves them out of an answer that is fine otherwise, so no call has failed. */
function lacksTokenIds(result: TrialResult): boolean {
  if (laxBoolean.safeParse(result.config.agent.kwargs['collect_rollout_details']).data !== true)
    return false;
  const parts = agentResultsOf(result);
  const details = parts.flatMap(({ rollout_details }) => rollout_details ?? []);
  const hasIds = details.some(
    (detail) => typeof detail === 'object' && detail !== null && 'completion_token_ids' in detail,
  );
  return !hasIds && parts.some(({ n_output_tokens }) => (n_output_tokens ?? 0) > 0);
}

/** The sum of what is known; null when nothing is. */
export function sumKnown(values: readonly (number | null)[]): number | null {
  const known = values.filter((value) => value !== null);
  return known.length === 0 ? null : known.reduce((total, value) => total + value, 0);
}
