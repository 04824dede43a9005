/** Grading a finished trial again: no agent runs; what the source trial left is checked, copied, and verified in a fresh separate sandbox. */
import { cp, readFile, stat } from 'node:fs/promises';
import path from 'node:path';
import { messageOf, RolloutError } from '../../core/errors.ts';
import { artifactDestination } from '../../tasks/artifacts.ts';
import { trialConfigSchema } from '../../wire/harbor/trial-config.ts';
import { trialResultSchema, type TrialResult } from '../../wire/harbor/trial-result.ts';
import { readManifest } from '../artifact-manifest.ts';
import type { Stage, TrialRun } from '../stage.ts';
import { verifySeparate } from './verify-separate.ts';
import type { Sequence } from '../sequence.ts';

const takeOverSource: Stage = {
  name: 'taking over the source trial',
  phase: 'resolve',
  async run(run) {
    const source = run.plan.config.source_trial;
    if (source === null) return;
    if (source.type !== 'local' || source.path === null)
      throw impossible('only local trials can be graded again', 'source_trial.type');
    checkTask(run);
    const result = await readSource(source.path);
    if (result.task_name !== run.plan.task.name)
      throw impossible(`it ran the task ${result.task_name}`, 'source_trial.path');
    await checkArtifacts(run, source.path);
    for (const part of ['agent', 'artifacts'] as const)
      await cp(path.join(source.path, part), run.folder.current[part], {
        recursive: true,
        force: true,
        verbatimSymlinks: true,
      });
    run.record.source = { agentInfo: result.agent_info, agentResult: result.agent_result };
  },
};

export const regradeSequence: Sequence = { start: [takeOverSource], round: [verifySeparate] };

function checkTask({ plan }: TrialRun): void {
  const [round] = plan.rounds;
  if (plan.task.steps.length > 0 || round === undefined)
    throw impossible('the task has several steps', 'steps');
  if (round.verifier === null) throw impossible('verification is disabled', 'verifier.disable');
  if (round.verifier.mode !== 'separate')
    throw impossible('the verifier of the task shares the sandbox', 'verifier.environment_mode');
}

/** The result of the source, which must have run to a usable end. */
async function readSource(dir: string): Promise<TrialResult> {
  try {
    const read = async (name: string): Promise<unknown> =>
      JSON.parse(await readFile(path.join(dir, name), 'utf8'));
    trialConfigSchema.parse(await read('config.json'));
    return trialResultSchema.parse(await read('result.json'));
  } catch (error) {
    throw impossible(`its folder cannot be read: ${messageOf(error)}`, 'source_trial.path');
  }
}

/** Every declared artifact was collected to where the task says today, and is still there. */
async function checkArtifacts({ plan }: TrialRun, dir: string): Promise<void> {
  const manifest = await readManifest(path.join(dir, 'artifacts'));
  for (const artifact of plan.rounds[0]?.artifacts ?? []) {
    const place = `artifacts/${artifactDestination(artifact)}`;
    const entry = manifest.find(
      ({ source, service, destination }) =>
        source === artifact.source && service === artifact.service && destination === place,
    );
    const isThere = (await stat(path.join(dir, place)).catch(() => null)) !== null;
    const isUsable = entry?.status === 'empty' || (entry?.status === 'ok' && isThere);
    if (!isUsable) throw impossible(`it did not keep ${artifact.source}`, 'artifacts');
  }
}

function impossible(why: string, field: string): RolloutError {
  return new RolloutError(
    'REGRADE_IMPOSSIBLE',
    `the finished trial cannot be graded again: ${why}`,
    { phase: 'resolve', field, remedy: 'Run the trial again.' },
  );
}
