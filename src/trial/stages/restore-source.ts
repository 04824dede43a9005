/**
 * Brings what a finished trial left into the folder of this one: its agent's logs and its artifacts. Refuses, before anything is copied,
 * a source whose evidence is not complete: a verdict on half of it would be an invented one.
 */
import { cp, readFile, stat } from 'node:fs/promises';
import path from 'node:path';
import { messageOf, RolloutError } from '../../core/errors.ts';
import { artifactDestination } from '../../tasks/artifacts.ts';
import type { Artifact } from '../../tasks/task.ts';
import { trialConfigSchema } from '../../wire/harbor/trial-config.ts';
import { trialResultSchema, type TrialResult } from '../../wire/harbor/trial-result.ts';
import { readManifest, type ManifestEntry } from '../artifact-manifest.ts';
import type { RoundRun, Stage } from '../stage.ts';

export const restoreSource: Stage<RoundRun> = {
  name: 'restoring the source trial',
  phase: 'collect',
  async run(run) {
    const { source_trial: source } = run.plan.config;
    if (source?.type !== 'local' || source.path === null)
      throw impossible(
        'source_trial',
        'only trials in folders of this machine can be graded again',
      );
    const dir = source.path;
    const result = await readSource(dir);
    run.record.agentInfo = result.agent_info;
    checkTask(run, result);
    await checkArtifacts(dir, run.round.artifacts);
    for (const part of ['agent', 'artifacts'] as const)
      if (await exists(path.join(dir, part)))
        await cp(path.join(dir, part), run.folders[part], {
          recursive: true,
          verbatimSymlinks: true,
        });
    run.outcome.agentResult = result.agent_result;
  },
};

async function readSource(dir: string): Promise<TrialResult> {
  const config = await parseFile(dir, 'config.json', trialConfigSchema);
  const result = await parseFile(dir, 'result.json', trialResultSchema);
  if (config.verifier.disable)
    throw impossible('verifier.disable', 'the source trial ran without verification');
  if (result.step_results !== null)
    throw impossible('source_trial', 'a multi-step trial cannot be graded again');
  return result;
}

async function parseFile<T>(
  dir: string,
  name: string,
  schema: { parse(value: unknown): T },
): Promise<T> {
  try {
    return schema.parse(JSON.parse(await readFile(path.join(dir, name), 'utf8')));
  } catch (error) {
    const reason = error instanceof SyntaxError ? 'it is no JSON' : messageOf(error).split('\n')[0];
    throw impossible(path.join(dir, name), `${name} of the source cannot be read: ${reason ?? ''}`);
  }
}

function checkTask({ plan, round }: RoundRun, source: TrialResult): void {
  if (round.verifier === null)
    throw impossible('verifier.disable', 'grading again needs verification');
  if (round.verifier.mode !== 'separate')
    throw impossible(
      'verifier.environment_mode',
      'the verifier of this task shares the sandbox of the agent, which is gone',
    );
  if (plan.task.name !== source.task_name)
    throw impossible('task', `the source ran the task ${source.task_name}, not ${plan.task.name}`);
}

async function checkArtifacts(dir: string, artifacts: readonly Artifact[]): Promise<void> {
  const artifactsDir = path.join(dir, 'artifacts');
  const entries = await readManifest(artifactsDir);
  if (entries.length === 0 && artifacts.length > 0)
    throw impossible('artifacts/manifest.json', 'the source has no readable list of artifacts');
  for (const artifact of artifacts) {
    const destination = artifactDestination(artifact);
    const entry = entries.find((candidate) => isEntryOf(candidate, artifact, destination));
    if (entry === undefined)
      throw impossible(
        artifact.source,
        `the source did not collect it to artifacts/${destination}`,
      );
    if (entry.status !== 'ok' && entry.status !== 'empty')
      throw impossible(artifact.source, `collecting it in the source ended as ${entry.status}`);
    if (entry.status === 'ok' && !(await exists(path.join(artifactsDir, destination))))
      throw impossible(artifact.source, `artifacts/${destination} of the source is gone`);
  }
}

function isEntryOf(entry: ManifestEntry, artifact: Artifact, destination: string): boolean {
  return (
    entry.source === artifact.source &&
    entry.service === artifact.service &&
    entry.destination === `artifacts/${destination}`
  );
}

async function exists(file: string): Promise<boolean> {
  return (await stat(file).catch(() => null)) !== null;
}

function impossible(field: string, message: string): RolloutError {
  return new RolloutError('REGRADE_IMPOSSIBLE', message, {
    phase: 'collect',
    field,
    remedy: 'Run the trial again.',
  });
}
