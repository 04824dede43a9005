/**
 * What a trial does, in order. `start` runs once; `round` runs once for a single-step task and once per step otherwise. A failed stage ends its
 * list, except for the stages that save what there is.
 */
import { errorRegistry } from '../core/error-registry.ts';
import { stopsAfter } from './step-gate.ts';
import { archiveStep } from './stages/archive-step.ts';
import { bringSkills } from './stages/bring-skills.ts';
import { checkAgent } from './stages/check-agent.ts';
import { checkHealth } from './stages/check-health.ts';
import { cleanLogs } from './stages/clean-logs.ts';
import { collect } from './stages/collect.ts';
import { prepareStep } from './stages/prepare-step.ts';
import { runAgent } from './stages/run-agent.ts';
import { saveAgentLogs } from './stages/save-agent-logs.ts';
import { setUpAgent } from './stages/set-up-agent.ts';
import { startEnvironment } from './stages/start-environment.ts';
import { stopAgent } from './stages/stop-agent.ts';
import { uploadEnvironmentFiles } from './stages/upload-environment-files.ts';
import { verifySeparate } from './stages/verify-separate.ts';
import { verifyShared } from './stages/verify-shared.ts';
import type { RoundRun, Stage, TrialRun } from './stage.ts';
import { roundName } from './timeouts.ts';
import type { RoundPlan } from './trial-plan.ts';

export interface Sequence {
  readonly start: readonly Stage[];
  readonly round: readonly Stage<RoundRun>[];
}

export const standardSequence: Sequence = {
  start: [
    checkAgent,
    startEnvironment,
    uploadEnvironmentFiles,
    checkHealth,
    bringSkills,
    setUpAgent,
  ],
  round: [
    prepareStep,
    runAgent,
    stopAgent,
    saveAgentLogs,
    collect,
    cleanLogs,
    verifyShared,
    verifySeparate,
    archiveStep,
  ],
};

/** Runs one stage under its name: tells observers, keeps the trail, lets errors through. */
export type StageRunner = <R extends TrialRun>(
  stage: Stage<R>,
  run: R,
  signal: AbortSignal,
) => Promise<void>;

/** Failures end up in the record; only the reason of a fired `signal` is thrown. */
export async function runSequence(
  run: TrialRun,
  { sequence, runStage }: { readonly sequence: Sequence; readonly runStage: StageRunner },
  signal: AbortSignal,
): Promise<void> {
  const { record, plan } = run;
  try {
    for (const stage of sequence.start) await runStage(stage, run, signal);
  } catch (error) {
    signal.throwIfAborted();
    record.fail(error);
    await salvageStart(run, { sequence, runStage }, signal);
    return;
  }
  if (plan.config.install_only) return;
  for (const round of plan.rounds) {
    const roundRun = openRound(run, round);
    await runRound(roundRun, { sequence, runStage }, signal);
    if (record.failure !== null || stopsAfter(roundRun)) return;
  }
}

function openRound(run: TrialRun, round: RoundPlan): RoundRun {
  return {
    ...run,
    round,
    outcome: run.record.openRound(round.step?.name ?? null),
    roundDeadline: run.deadline.child(roundName(round.index)),
    folders: run.folder.current,
    keptProcesses: null,
  };
}

async function runRound(
  run: RoundRun,
  { sequence, runStage }: { readonly sequence: Sequence; readonly runStage: StageRunner },
  signal: AbortSignal,
): Promise<void> {
  let hasFailed = false;
  for (const stage of sequence.round) {
    if (hasFailed && stage.isSalvage !== true) continue;
    try {
      await runStage(stage, run, signal);
    } catch (error) {
      signal.throwIfAborted();
      hasFailed = true;
      run.outcome.failure ??= run.record.note(error);
    }
  }
  const { failure } = run.outcome;
  if (failure !== null && concernsTrial(run)) run.record.failure ??= failure;
}

/** A single step's failure is the trial's. Of several steps, a failing machine is: it says nothing about the step and is worth a retry. */
function concernsTrial({ round, outcome }: RoundRun): boolean {
  if (round.step === null || outcome.failure === null) return round.step === null;
  return errorRegistry[outcome.failure.error.code].category === 'infrastructure';
}

/** After a failed start only the logs are worth saving, and only when there is a sandbox. */
async function salvageStart(
  run: TrialRun,
  { sequence, runStage }: { readonly sequence: Sequence; readonly runStage: StageRunner },
  signal: AbortSignal,
): Promise<void> {
  const [first] = run.plan.rounds;
  if (first === undefined || !run.state.isEnvironmentUp) return;
  const roundRun = openRound(run, { ...first, step: null });
  run.record.rounds.pop(); // nothing of the round has run: it gets no entry
  for (const stage of sequence.round.filter((one) => one.isSalvage === true)) {
    try {
      await runStage(stage, roundRun, signal);
    } catch (error) {
      signal.throwIfAborted();
      run.logger.log('warn', 'nothing saved', { stage: stage.name, reason: String(error) });
    }
  }
}
