/** Which task a rollout works on: the one that its metadata names, else the template, or the row's of the dataset. Warnings never hold an address. */
import { realpath } from 'node:fs/promises';
import { homedir } from 'node:os';
import path from 'node:path';
import { RolloutError } from '../../core/errors.ts';
import { taskEntrySchema, type TaskEntry } from '../../wire/harbor/task-entry.ts';
import type { HarborOptions } from './harbor-options.ts';

export interface SelectedTask {
  readonly entry: TaskEntry;
  /** The one that the configuration names. */
  readonly isTemplate: boolean;
  readonly warnings: readonly string[];
}

type Options = Pick<HarborOptions, 'tasksDir' | 'taskMode'>;

/** REFERENCE_INVALID. `baseDir`: where relative paths of a row begin. */
export async function selectTask(
  given: Readonly<Record<string, unknown>> | null,
  options: Options,
  baseDir: string,
): Promise<SelectedTask> {
  const metadata = given ?? {};
  const task = textOf(metadata, 'harbor_task');
  if (task !== null) return named(task, metadata, baseDir);
  if (options.taskMode === 'template')
    return { entry: entry({ path: options.tasksDir }), isTemplate: true, warnings: [] };
  const id = textOf(metadata, 'harbor_task_id');
  if (id === null) throw invalid('harbor_task_id', 'metadata names no task of the dataset');
  return {
    entry: entry({ path: await below(options.tasksDir, id) }),
    isTemplate: false,
    warnings: [],
  };
}

function named(
  task: string,
  metadata: Readonly<Record<string, unknown>>,
  baseDir: string,
): SelectedTask {
  const gitUrl = textOf(metadata, 'git_url');
  if (gitUrl !== null) {
    const commit = textOf(metadata, 'git_commit_id');
    return {
      entry: entry({ path: task, git_url: gitUrl, git_commit_id: commit }),
      isTemplate: false,
      warnings:
        commit === null ? ['the task of a repository is not pinned: set git_commit_id'] : [],
    };
  }
  if (/^[./~]/.test(task)) {
    const dir = path.resolve(baseDir, task.replace(/^~(?=\/|$)/, homedir()));
    return { entry: entry({ path: dir }), isTemplate: false, warnings: [] };
  }
  const [name = '', ...rest] = task.split('@');
  if (!/^[^/]+\/[^/]+$/.test(name))
    throw invalid('harbor_task', `${JSON.stringify(task)} is no task reference`);
  const ref = rest.join('@') === '' ? 'latest' : rest.join('@');
  return {
    entry: entry({ name, ref }),
    isTemplate: false,
    warnings: ref === 'latest' ? [`the package ${name} is not pinned: name it as ${name}@REF`] : [],
  };
}

/** A folder of the dataset; what leads out of it, by a link too, is as unknown as what is not there. */
async function below(root: string, id: string): Promise<string> {
  const unknown = invalid('harbor_task_id', `the dataset has no task ${JSON.stringify(id)}`);
  if (path.isAbsolute(id) || id.includes('\0')) throw unknown;
  const [realRoot, real] = await Promise.all([
    realpath(root).catch(() => null),
    realpath(path.resolve(root, id)).catch(() => null),
  ]);
  if (realRoot === null || real === null) throw unknown;
  const relative = path.relative(realRoot, real);
  if (relative === '' || relative.startsWith('..') || path.isAbsolute(relative)) throw unknown;
  return real;
}

/** null = absent or empty, as Python sees it. */
function textOf(metadata: Readonly<Record<string, unknown>>, key: string): string | null {
  const value = metadata[key];
  if (value === undefined || value === null || value === '' || value === 0 || value === false)
    return null;
  if (typeof value === 'string') return value;
  throw invalid(key, `metadata.${key} is no text`);
}

function entry(fields: Partial<TaskEntry>): TaskEntry {
  return taskEntrySchema.parse(fields);
}

function invalid(key: string, message: string): RolloutError {
  return new RolloutError('REFERENCE_INVALID', message, {
    phase: 'resolve',
    field: `metadata.${key}`,
    remedy:
      'Set metadata.harbor_task to a local path, to org/name@ref, or to the path in the repository git_url; of a dataset, set harbor_task_id to the folder of a task in tasks_dir.',
  });
}
