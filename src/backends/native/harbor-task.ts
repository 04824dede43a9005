/**
 * Which task a rollout names in its metadata: `harbor_task` as a local path (`./`, `/`, `~`), with `git_url` a task of a repository (`task_path`,
 * `git_commit_id`), else a package `org/name[@ref]`. Warnings name what to set, never an address: it may hold a credential.
 */
import { homedir } from 'node:os';
import path from 'node:path';
import { RolloutError } from '../../core/errors.ts';
import { taskEntrySchema, type TaskEntry } from '../../wire/harbor/task-entry.ts';

export interface HarborTask {
  readonly entry: TaskEntry;
  readonly warnings: readonly string[];
}

export interface TaskReading {
  /** Key of the metadata that names the task. */
  readonly taskKey?: string;
  /** Absolute: where a relative folder begins. Absent: it stays as it is. */
  readonly baseDir?: string;
}

/** REFERENCE_INVALID says what a reference looks like. */
export function readHarborTask(
  given: Readonly<Record<string, unknown>> | null,
  { taskKey = 'harbor_task', baseDir }: TaskReading = {},
): HarborTask {
  const metadata = given ?? {};
  const task = metadata[taskKey];
  if (task === undefined || task === null || task === '' || task === 0 || task === false)
    throw invalid(`metadata names no task under ${taskKey}`);
  if (typeof task === 'string' && /^[./~]/.test(task)) {
    const folder = task.replace(/^~(?=\/|$)/, homedir());
    const located = baseDir === undefined ? folder : path.resolve(baseDir, folder);
    return { entry: entry({ path: located }), warnings: [] };
  }
  const gitUrl = textOf(metadata, 'git_url');
  if (gitUrl !== null) return gitTask(gitUrl, metadata);
  return packageTask(typeof task === 'string' ? task : JSON.stringify(task));
}

function gitTask(gitUrl: string, metadata: Readonly<Record<string, unknown>>): HarborTask {
  const commit = textOf(metadata, 'git_commit_id');
  const isPinned = commit !== null && commit.trim() !== '';
  return {
    entry: entry({
      path: textOf(metadata, 'task_path') ?? '.',
      git_url: gitUrl,
      git_commit_id: isPinned ? commit : null,
    }),
    warnings: isPinned ? [] : ['the task of a repository is not pinned: set git_commit_id'],
  };
}

/** null = absent or empty, as Python sees it. Another kind of value is a mistake: to pass over it would be to run another task. */
function textOf(metadata: Readonly<Record<string, unknown>>, key: string): string | null {
  const value = metadata[key];
  if (value === undefined || value === null || value === '' || value === 0 || value === false)
    return null;
  if (typeof value === 'string') return value;
  throw invalid(`metadata.${key} is no text`, `metadata.${key}`);
}

function packageTask(text: string): HarborTask {
  const [name = '', ...rest] = text.split('@');
  if (!/^[^/]+\/[^/]+$/.test(name)) throw invalid(`${JSON.stringify(text)} is no task reference`);
  const given = rest.join('@');
  const ref = given === '' ? 'latest' : given;
  const isPinned = ref !== 'latest';
  return {
    entry: entry({ name, ref }),
    warnings: isPinned ? [] : [`the package ${name} is not pinned: name it as ${name}@REF`],
  };
}

function entry(fields: Partial<TaskEntry>): TaskEntry {
  return taskEntrySchema.parse(fields);
}

function invalid(message: string, field = 'metadata.harbor_task'): RolloutError {
  return new RolloutError('REFERENCE_INVALID', message, {
    phase: 'resolve',
    field,
    remedy:
      'Set metadata.harbor_task to a local path (./task, /task, ~/task), to org/name@ref, or set git_url with task_path and git_commit_id.',
  });
}
