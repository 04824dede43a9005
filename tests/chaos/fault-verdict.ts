/** Whether a trial that met faults ended as it must; pure, so that tampered evidence can show that it is found. */
import { errorRegistry } from '../../src/core/error-registry.ts';
import type { TrialResult } from '../../src/wire/harbor/trial-result.ts';
import type { EngineLogLine } from '../support/engine-process.ts';
import { differenceOf, type KeptCall } from './exact-corpus.ts';

export interface Evidence {
  readonly result: TrialResult;
  /** The agent's. */
  readonly limitMs: number;
  /** What the verifier wrote; null = nothing. */
  readonly rewardFile: string | null;
  /** What the agent had written when it was stopped; null = nothing. */
  readonly answer: string | null;
  /** Agent steps of the trajectory. */
  readonly kept: readonly { readonly source: string; readonly metrics?: KeptCall | null }[];
  readonly sampled: readonly EngineLogLine[];
}

/** For the agent to return once it is told to, on a machine that is busy. */
const graceMs = 15_000;

/** Verification follows these although something went wrong. */
const verified: ReadonlySet<string> = new Set(['AGENT_TIMEOUT', 'AGENT_EXIT_NONZERO']);
/** Nobody has said what went wrong. */
const untyped: ReadonlySet<string> = new Set(['INTERNAL', 'AGENT_FAILED', 'AGENT_SETUP_FAILED']);

/** One line per thing that is wrong. */
export function judge(evidence: Evidence): readonly string[] {
  return [...typeProblems(evidence), ...rewardProblems(evidence), ...tokenProblems(evidence)];
}

function typeProblems({ result, limitMs }: Evidence): string[] {
  const failure = result.slipway?.failure ?? null;
  const problems: string[] = [];
  if (result.slipway?.outcome == null) problems.push('it has no outcome');
  if (failure === null && result.exception_info !== null)
    problems.push(`untyped: ${result.exception_info.exception_type}`);
  if (failure !== null && (!(failure.code in errorRegistry) || untyped.has(failure.code)))
    problems.push(`untyped: ${failure.code}: ${failure.message}`);
  const agentMs = result.slipway?.phase_times.agent_ms ?? 0;
  if (agentMs > limitMs + graceMs)
    problems.push(`the agent ran for ${Math.round(agentMs)} ms, its limit is ${limitMs} ms`);
  return problems;
}

function rewardProblems({ result, rewardFile, answer, kept }: Evidence): string[] {
  const code = result.slipway?.failure?.code ?? null;
  const rewards = result.verifier_result?.rewards ?? null;
  const reward = rewards?.['reward'] ?? null;
  if (rewardFile === null) return reward === null ? [] : [`made up: reward ${reward}`];
  const right = answer?.trim() === 'yes' ? 1 : 0;
  const problems: string[] = [];
  if (kept.length === 0 && result.slipway?.outcome.trainable === true)
    problems.push('a sample to train on, without one reply of the model');
  if (code !== null && !verified.has(code)) problems.push(`verified after ${code}`);
  if (reward !== Number(rewardFile)) problems.push(`made up: reward ${reward}, not ${rewardFile}`);
  if (reward !== right) problems.push(`reward ${reward}, the answer deserves ${right}`);
  return problems;
}

/** What was kept was sampled, in that order, whatever was lost on the way. */
function tokenProblems({ kept, sampled }: Evidence): string[] {
  const rest = sampled.values();
  return kept.flatMap(({ metrics }, index) => {
    if (metrics?.completion_token_ids == null) return [];
    for (const line of rest) if (differenceOf(line, metrics) === null) return [];
    return [`call ${index + 1} of the trajectory was never sampled like that`];
  });
}
