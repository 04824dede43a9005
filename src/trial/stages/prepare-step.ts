import { stat } from 'node:fs/promises';
import path from 'node:path';
import { agentLogsDir } from '../../agents/agent.ts';
import { RolloutError } from '../../core/errors.ts';
import type { ProcessSnapshot } from '../../environments/environment.ts';
import { stepFolder } from '../../tasks/scripts.ts';
import { waitUntilHealthy } from '../healthcheck.ts';
import { takeBackFolders, workingFolder } from '../sandbox-folders.ts';
import { quote } from '../shell-quote.ts';
import type { RoundRun, Stage } from '../stage.ts';
import { healthcheckExpired } from './check-health.ts';

const setupScript = 'setup.sh';

/** Makes the sandbox ready for one step, as the step's agent user: empty agent logs, the step's files, its setup script, its health check. */
export const prepareStep: Stage<RoundRun> = {
  name: 'preparing step',
  phase: 'environment',
  applies: (run) => run.round.step !== null,
  async run(run, signal) {
    const before = await takeSnapshot(run, 'first-snapshot', signal);
    await run.record.timed('step_setup_ms', () => bringStepFiles(run, signal));
    await checkStepHealth(run, signal);
    const after = await takeSnapshot(run, 'last-snapshot', signal);
    run.keptProcesses = withNew(run.state.baseProcesses, before, after);
  },
};

async function takeSnapshot(
  { environment, roundDeadline }: RoundRun,
  span: 'first-snapshot' | 'last-snapshot',
  signal: AbortSignal,
): Promise<ProcessSnapshot> {
  return await roundDeadline.child('prepare').within(span, {
    signal,
    expired: snapshotExpired,
    work: (limited) => environment.snapshotProcesses(limited),
  });
}

/** The environment's own processes and what this step's setup left running; not what an agent's set-up or an earlier step did. */
function withNew(
  base: ProcessSnapshot | null,
  before: ProcessSnapshot,
  after: ProcessSnapshot,
): ProcessSnapshot {
  const fresh = [...after.keys].filter((key) => !before.keys.has(key));
  return { keys: new Set([...(base?.keys ?? []), ...fresh]) };
}

async function bringStepFiles(run: RoundRun, signal: AbortSignal): Promise<void> {
  const { environment, round, plan, roundDeadline } = run;
  const { step, agentUser: user } = round;
  if (step === null) return;
  const scope = roundDeadline.child('prepare');
  const files = stepFolder(plan.task.dir, step.name, 'workdir');
  const hasFiles = (await stat(files).catch(() => null))?.isDirectory() === true;
  const target = await scope.within('upload', {
    signal,
    expired: uploadExpired,
    work: async (limited) => {
      await takeBackFolders(environment, [{ dir: agentLogsDir, mode: '0777' }], limited);
      const folder = await workingFolder(environment, { user }, limited);
      if (hasFiles) await environment.uploadDir(files, folder, limited);
      return folder;
    },
  });
  const script = path.join(files, setupScript);
  if ((await stat(script).catch(() => null)) === null) return;
  await scope.within('setup', {
    signal,
    expired: setupExpired,
    work: (limited) => runSetup(run, path.posix.join(target, setupScript), limited),
  });
}

async function runSetup(run: RoundRun, script: string, signal: AbortSignal): Promise<void> {
  const command = `bash ${quote(script)}`;
  const user = run.round.agentUser;
  const { exitCode, stdout, stderr } = await run.environment.exec({ command, user }, signal);
  if (exitCode === 0) return;
  throw new RolloutError('STEP_SETUP_FAILED', `${setupScript} exited with ${exitCode}`, {
    phase: 'environment',
    field: `steps.${run.round.step?.name ?? ''}.workdir/${setupScript}`,
    remedy: `Correct ${setupScript} of this step.`,
    detail: `${stdout}\n${stderr}`.trim().slice(-2000),
  });
}

async function checkStepHealth(run: RoundRun, signal: AbortSignal): Promise<void> {
  const { step, agentUser: user } = run.round;
  const check = step?.healthcheck ?? null;
  if (step === null || check === null) return;
  const field = `steps.${step.name}.healthcheck`;
  const { environment, parts } = run;
  await run.record.timed('healthcheck_ms', () =>
    run.roundDeadline.child('prepare').within('healthcheck', {
      signal,
      expired: (limitMs) => healthcheckExpired(limitMs, field),
      work: (limited) =>
        waitUntilHealthy({ check, environment, user, clock: parts.clock, field }, limited),
    }),
  );
}

function snapshotExpired(limitMs: number): RolloutError {
  return new RolloutError(
    'ENVIRONMENT_LOST',
    `the sandbox did not list its processes within ${limitMs / 1000} s`,
    { phase: 'environment', remedy: 'Run the trial again.' },
  );
}

function uploadExpired(limitMs: number): RolloutError {
  return new RolloutError(
    'TRANSFER_FAILED',
    `the step's files were not in the sandbox after ${limitMs / 1000} s`,
    {
      phase: 'environment',
      field: 'workdir',
      remedy: 'Make workdir/ smaller, or build its files into the image.',
    },
  );
}

function setupExpired(limitMs: number): RolloutError {
  return new RolloutError(
    'STEP_SETUP_FAILED',
    `${setupScript} ran longer than ${limitMs / 1000} s`,
    {
      phase: 'environment',
      field: `workdir/${setupScript}`,
      remedy: 'Make it faster, or do its work in the image.',
    },
  );
}
