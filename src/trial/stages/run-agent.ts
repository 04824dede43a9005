/**
 * The agent's own time. It ends with the agent, or with its limit: then the agent gets a little grace to return, whatever it wrote so far stays,
 * and verification still runs. Waiting for a place in the agent's pool comes first and belongs to nobody's limit.
 */
import { deadlineVariable } from '../../agents/agent.ts';
import { attribute, isRolloutError, RolloutError } from '../../core/errors.ts';
import { LinkedAbort } from '../../core/linked-abort.ts';
import { isSamePolicy } from '../../wire/network-policy.ts';
import { emptyAgentResult, type AgentResult } from '../../wire/harbor/trial-result.ts';
import { agentEnvironment } from '../agent-environment.ts';
import { sandboxVariables } from '../agent-of-trial.ts';
import type { DeadlineScope } from '../deadline-scope.ts';
import { raceSignal } from '../../core/race-signal.ts';
import { switchNetwork } from '../network-phase.ts';
import type { RoundRun, Stage } from '../stage.ts';

export const runAgent: Stage<RoundRun> = {
  name: 'running agent',
  phase: 'agent',
  async run(run, signal) {
    const leave = await takePlace(run, signal);
    try {
      await runWithPlace(run, signal);
    } finally {
      leave();
    }
  },
};

async function takePlace(run: RoundRun, signal: AbortSignal): Promise<() => void> {
  const { admitAgent } = run.parts;
  if (admitAgent === undefined) return () => undefined;
  run.record.phase = 'queue';
  const { value, ms } = await run.work.queue(async () => {
    const admitted = admitAgent(signal);
    const giveBack = (leave: () => void): void => {
      if (signal.aborted) leave(); // came too late: nobody else would return this place
    };
    admitted.then(giveBack, () => undefined);
    return await raceSignal(admitted, signal);
  });
  run.record.spend('queue_ms', ms);
  run.record.phase = 'agent';
  return value;
}

async function runWithPlace(run: RoundRun, signal: AbortSignal): Promise<void> {
  const { outcome, record, round } = run;
  outcome.agentResult = { ...emptyAgentResult };
  const { environment, agent } = round.network;
  try {
    if (!isSamePolicy(environment, agent)) await switchNetwork(run.environment, agent, signal);
    await record.timed('agent_ms', () =>
      record.stamped(
        (timing) => (outcome.agentExecution = timing),
        () => runWithLimit(run, signal),
      ),
    );
  } catch (error) {
    signal.throwIfAborted();
    if (!endsWithVerification(error, run)) throw error;
    outcome.failure = record.note(error);
  }
}

/** A timeout and a non-zero exit are results to be verified; in a step every failure of the agent is. */
function endsWithVerification(error: unknown, run: RoundRun): boolean {
  if (run.round.step !== null) return true;
  return isRolloutError(error, 'AGENT_TIMEOUT') || isRolloutError(error, 'AGENT_EXIT_NONZERO');
}

async function runWithLimit(run: RoundRun, signal: AbortSignal): Promise<void> {
  const { agent, round, outcome } = run;
  const scope = run.roundDeadline.child('agent');
  const limitMs = scope.child('run').remainingMs;
  const isLimited = Number.isFinite(limitMs);
  const deadline = isLimited ? new Date(run.parts.clock.now().getTime() + limitMs) : null;
  using link = new LinkedAbort([signal], { ms: limitMs, reason: () => timedOut(limitMs, null) });
  const begun = agent.run(
    {
      instruction: round.instruction,
      environment: agentEnvironment(run.environment, {
        user: round.agentUser,
        env: {
          ...(deadline !== null && { [deadlineVariable]: deadline.toISOString() }),
          ...sandboxVariables(run),
        },
      }),
      step: round.step === null ? null : { name: round.step.name, index: round.index },
      deadline,
      record: (result: AgentResult) => (outcome.agentResult = result),
    },
    link.signal,
  );
  run.work.track(begun);
  try {
    await raceSignal(begun, link.signal);
  } catch (error) {
    signal.throwIfAborted();
    if (!link.signal.aborted)
      throw attribute(error, 'AGENT_FAILED', 'agent', `agent ${agent.name}`);
    const hindrance = await grace(begun, scope, signal);
    throw hindrance === null || hindrance === link.signal.reason
      ? link.signal.reason
      : timedOut(limitMs, hindrance);
  }
}

/** Lets an agent that was told to stop write its last lines; answers the typed failure that it returned with. */
async function grace(
  begun: Promise<void>,
  scope: DeadlineScope,
  signal: AbortSignal,
): Promise<RolloutError | null> {
  using link = new LinkedAbort([signal], {
    ms: scope.child('grace').remainingMs,
    reason: () => new Error('the agent did not return'),
  });
  const failure = await raceSignal(begun, link.signal).then(
    () => null,
    (error: unknown) => (isRolloutError(error) ? error : null),
  );
  signal.throwIfAborted();
  return failure;
}

/** `hindrance` is what had kept the agent from working. */
function timedOut(limitMs: number, hindrance: RolloutError | null): RolloutError {
  // What was left of the limit when the run began is a fraction of a millisecond less than the limit.
  const limitSec = Math.round(limitMs) / 1000;
  const why = hindrance === null ? '' : ` (${hindrance.code}: ${hindrance.message})`;
  return new RolloutError('AGENT_TIMEOUT', `the agent ran longer than ${limitSec} s${why}`, {
    phase: 'agent',
    field: 'agent.timeout_sec',
    remedy:
      hindrance?.remedy ??
      'Raise agent.timeout_sec, --agent-timeout-multiplier or agent.override_timeout_sec.',
    ...(hindrance !== null && { cause: hindrance, retryable: hindrance.retryable }),
  });
}
