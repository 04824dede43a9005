/**
 * Digests of what an evaluation takes from local folders: the tasks that its rows and its configuration name, the agent's skills, and the requirements of
 * the code. Tasks of packages and repositories are pinned by what the rows say of them; what is not there when it begins is no part of it yet, and its
 * rows fail by themselves.
 */
import { stat } from 'node:fs/promises';
import { relative, resolve } from 'node:path';
import { compileHarborOptions } from '../../backends/harbor/harbor-options.ts';
import { fingerprintOf } from '../../backends/harbor/requirement-files.ts';
import { compileNativeOptions } from '../../backends/native/native-options.ts';
import type { ServeConfig } from '../../config/serve/read-serve-config.ts';
import { isRolloutError } from '../../core/errors.ts';
import { contentHash } from '../../tasks/content-hash.ts';
import { taskChecksum } from '../../tasks/task-checksum.ts';
import type { TaskEntry } from '../../wire/harbor/task-entry.ts';
import { trialSettings } from '../preflight/trial-settings.ts';
import { optionsOf } from '../serve/open-backend.ts';
import type { Dataset } from './dataset.ts';

/** By folder, relative to that of the configuration; requirements by the name of their setting. */
export type TaskDigests = Readonly<Record<string, string>>;

export async function taskDigests(
  config: ServeConfig,
  from: { readonly dataset: Dataset; readonly cwd: string; readonly signal: AbortSignal },
): Promise<TaskDigests> {
  const settings = trialSettings(config);
  if (settings === null) return {};
  const { dataset, cwd, signal } = from;
  const tasks = new Set(settings.ownTasks.flatMap((entry) => localFolder(entry, cwd)));
  for (let index = 0; index < dataset.size; index += 1) {
    signal.throwIfAborted();
    const { metadata } = await dataset.row(index);
    try {
      const { entry } = await settings.taskOf(metadata);
      for (const folder of localFolder(entry, cwd)) tasks.add(folder);
    } catch (error) {
      if (!isRolloutError(error)) throw error;
    }
  }
  const digests: Record<string, string> = {};
  const add = async (
    folder: string,
    digest: (dir: string, signal: AbortSignal) => Promise<string>,
  ): Promise<void> => {
    if ((await stat(folder).catch(() => null))?.isDirectory() !== true) return;
    const name = relative(config.baseDir, folder);
    digests[name === '' ? '.' : name] = await digest(folder, signal);
  };
  for (const folder of [...tasks].sort()) await add(folder, contentHash);
  for (const source of skillSources(config)) await add(resolve(cwd, source), taskChecksum);
  return { ...digests, ...(await requirementsDigest(config)) };
}

/** Of the files that they name, too. CONFIG_INVALID where a file of requirements cannot be read. */
async function requirementsDigest(config: ServeConfig): Promise<TaskDigests> {
  if (config.backend.kind !== 'harbor') return {};
  const { requirements } = compileHarborOptions(optionsOf(config), config.baseDir);
  if (requirements === null) return {};
  return { 'backend.harbor.requirements': await fingerprintOf(requirements) };
}

function localFolder({ path, git_url: url }: TaskEntry, cwd: string): readonly string[] {
  return path === null || url !== null ? [] : [resolve(cwd, path)];
}

function skillSources(config: ServeConfig): readonly string[] {
  const options = optionsOf(config);
  const ofTrials =
    config.backend.kind === 'harbor'
      ? compileHarborOptions(options, config.baseDir).trialOptions
      : options;
  return compileNativeOptions(ofTrials).agent.skills;
}
