/**
 * The diagnostics of a rollout that is a trial: one object, the same in the callbacks, the log and the archive. Its phase is where the failure arose:
 * it is fixed when a stage fails, so that a verification that follows all the same does not move it.
 */
import { errorRegistry, type ErrorCode } from '../../core/error-registry.ts';
import type { RolloutError } from '../../core/errors.ts';
import type { TrialEvent } from '../../trial/trial-events.ts';
import type { TrialTimings } from '../../trial/trial.ts';
import type { TimingInfo } from '../../wire/harbor/trial-result.ts';
import type { Outcome } from '../../wire/outcome.ts';
import type { ErrorCategory } from '../../wire/rollout/callback-payloads.ts';

/** In the words of the protocol. */
export const diagnosticPhases = [
  'setup',
  'trial_setup',
  'environment_setup',
  'agent_setup',
  'agent',
  'verification',
  'grading',
  'cancelled',
] as const;
export type DiagnosticPhase = (typeof diagnosticPhases)[number];

export type Seconds = Readonly<Record<string, number>>;

export interface DiagnosticFacts {
  /** As `/health` names it. */
  readonly backend: string;
  readonly phase: DiagnosticPhase;
  /** null = nothing failed. */
  readonly code: ErrorCode | null;
  /** As `result.json` has it, where that says more than the code: an agent's exceptions have names of their own. */
  readonly exceptionType?: string | null;
  readonly category: ErrorCategory | null;
  readonly timings: Seconds;
  readonly outcome: Outcome;
}

export function trialDiagnostics(facts: DiagnosticFacts): Readonly<Record<string, unknown>> {
  const { backend, phase, code, category, timings, outcome } = facts;
  const registered = code === null ? null : errorRegistry[code].harborType;
  return {
    backend,
    phase,
    harbor_exception_type: facts.exceptionType ?? registered,
    category,
    timings_sec: timings,
    outcome,
  };
}

type Failure = Pick<RolloutError, 'code' | 'phase'>;

/** Where a trial is, and where it failed. */
export class TrialPhases {
  #at: DiagnosticPhase = 'setup';
  #step: string | null = null;
  #known: RolloutError | null = null;
  #hasAgentSetup = false;
  readonly #failed: { readonly step: string | null; readonly phase: DiagnosticPhase }[] = [];

  /** `failure`: what the trial has failed with by then. An agent that runs out of time fails no stage. */
  heed(event: TrialEvent, failure: RolloutError | null): void {
    if (failure !== null && failure !== this.#known)
      this.#failed.push({ step: this.#step, phase: this.#at });
    this.#known = failure;
    if (event.type === 'trial:started') this.#at = 'trial_setup';
    else if (event.type === 'stage:started') {
      this.#step = event.step;
      this.#begin(event.phase);
    } else if (event.type === 'stage:ended' && event.isFailed)
      this.#failed.push({ step: event.step, phase: this.#at });
  }

  /** Where a failure arose; `step`: whose it is, null = the trial's. */
  of({ code, phase }: Failure, step: string | null): DiagnosticPhase {
    if (code === 'CANCELLED' || code === 'SERVER_STOPPING') return 'cancelled';
    const failed = this.#failed.find((one) => step === null || one.step === step);
    const arose = failed?.phase ?? this.#at;
    // Reading the task belongs to finding it, although the trial does it.
    const isFound = arose !== 'trial_setup' || (phase !== 'resolve' && phase !== 'config');
    return isFound ? arose : 'setup';
  }

  #begin(phase: RolloutError['phase']): void {
    switch (phase) {
      case 'environment':
        // Also what a step brings for its agent.
        this.#at = this.#hasAgentSetup ? 'agent_setup' : 'environment_setup';
        return;
      case 'agent-setup':
        if (this.#at === 'trial_setup') return; // nothing is up: the agent is only looked at
        this.#hasAgentSetup = true;
        this.#at = 'agent_setup';
        return;
      case 'agent':
      case 'agent-stop':
      case 'model-call':
        this.#at = 'agent';
        return;
      case 'verifier':
        this.#at = 'verification';
        return;
      case 'config':
      case 'resolve':
      case 'queue':
      case 'collect':
      case 'cleanup':
      case 'callback':
      case 'server':
        return;
    }
  }
}

/** What is known of the times of a trial, in seconds: what has not begun and ended is left out. `setupSec`: until it was made. */
export function timingsOf(times: TrialTimings | null, setupSec: number): Seconds {
  if (times === null) return { setup: setupSec };
  const { started_at, finished_at, environment_setup, agent_setup, step_results } = times;
  const rounds = [times, ...(step_results ?? [])];
  const all = (field: 'agent_execution' | 'verifier'): number | null => {
    const spans = rounds.flatMap((round) => spanOf(round[field]) ?? []);
    return spans.length === 0 ? null : seconds(spans.reduce((total, value) => total + value, 0));
  };
  const bootAt = environment_setup?.started_at ?? finished_at;
  const named = {
    setup: setupSec,
    trial_setup: spanOf({ started_at, finished_at: bootAt }),
    environment_setup: spanOf(environment_setup),
    agent_setup: spanOf(agent_setup),
    agent: all('agent_execution'),
    verification: all('verifier'),
    trial: spanOf({ started_at, finished_at }),
  };
  return Object.fromEntries(
    Object.entries(named).filter((entry): entry is [string, number] => entry[1] !== null),
  );
}

/** Never negative; null = not both ends are known. */
function spanOf(timing: TimingInfo | null): number | null {
  const from = Date.parse(timing?.started_at ?? '');
  const to = Date.parse(timing?.finished_at ?? '');
  const span = Math.max(0, to - from) / 1000;
  return Number.isFinite(span) ? seconds(span) : null;
}

function seconds(value: number): number {
  return Math.round(value * 1e6) / 1e6;
}
