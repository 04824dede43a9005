import { stat } from 'node:fs/promises';
import { RolloutError } from '../../core/errors.ts';
import type { TaskEntry } from '../../wire/harbor/task-entry.ts';
import type { FetchedTask } from './git-tasks.ts';
import { publicGitUrl } from './git-url.ts';
import type { FetchedPackage } from './package-tasks.ts';
import { gitTaskId } from './task-id.ts';
import { isFullHash, type GitTask, type LocalTask, type PackageTask } from './task-reference.ts';

/** A task reference that was followed: a folder on this machine and what it is pinned to. */
export interface ResolvedTask {
  /** Names the task and its content for ever, without addresses that hold secrets: for lock files and for comparing jobs. */
  readonly id: string;
  readonly kind: 'local' | 'git' | 'package';
  /** Folder name; `org/name` for packages. */
  readonly name: string;
  /** Absolute. Never written to: other processes may be reading it. */
  readonly dir: string;
  /** Without user name, password and query. */
  readonly gitUrl: string | null;
  /** The commit that was checked out, in full. */
  readonly gitCommit: string | null;
  /** Path as the reference gives it. null for packages. */
  readonly path: string | null;
  /** Content hash of a package, `sha256:<hex>`. */
  readonly digest: string | null;
  /** Name of the dataset it came from. */
  readonly source: string | null;
  /** The entry pinned to what was found, the commit or the digest filled in, and without credentials in its address. */
  readonly entry: TaskEntry;
  /** Each names the task, never an address. */
  readonly warnings: readonly string[];
}

/** Throws TASK_NOT_FOUND when the folder is not there. */
export async function localTask(task: LocalTask): Promise<ResolvedTask> {
  const status = await stat(task.dir).catch(() => null);
  if (status?.isDirectory() !== true)
    throw new RolloutError('TASK_NOT_FOUND', `there is no folder ${task.dir}`, {
      phase: 'resolve',
      field: 'path',
      remedy: 'Check the path of the task.',
    });
  return {
    id: `local ${task.dir}`,
    kind: 'local',
    name: task.name,
    dir: task.dir,
    gitUrl: null,
    gitCommit: null,
    path: task.entry.path,
    digest: null,
    source: task.source,
    entry: task.entry,
    warnings: [],
  };
}

export function gitTask(task: GitTask, { commit, dir, warnings }: FetchedTask): ResolvedTask {
  const gitUrl = publicGitUrl(task.remote);
  return {
    id: `git ${gitTaskId({ url: gitUrl, commit, path: task.path })}`,
    kind: 'git',
    name: task.name,
    dir,
    gitUrl,
    gitCommit: commit,
    path: task.path,
    digest: null,
    source: task.source,
    entry: { ...task.entry, git_url: gitUrl, git_commit_id: commit },
    warnings: [...unpinnedGitWarnings(task, commit), ...warnings],
  };
}

function unpinnedGitWarnings(task: GitTask, commit: string): readonly string[] {
  if (task.commit !== null && isFullHash(task.commit)) return [];
  const what = task.commit === null ? 'no commit is given' : `${task.commit} may move`;
  return [
    `task ${task.name}: ${what}, so another run may get another task; this one is at commit ${commit}`,
  ];
}

export function packageTask(
  task: PackageTask,
  { dir, digest, warnings }: FetchedPackage,
): ResolvedTask {
  const { ref } = task.package;
  const isLatest = ref.kind === 'tag' && ref.text === 'latest';
  const unpinned = isLatest
    ? [
        `task ${task.name}: the tag latest moves, so another run may get another task; this one is ${digest}`,
      ]
    : [];
  return {
    id: `package ${task.name}@${digest}`,
    kind: 'package',
    name: task.name,
    dir,
    gitUrl: null,
    gitCommit: null,
    path: null,
    digest,
    source: task.source,
    entry: { ...task.entry, ref: digest },
    warnings: [...unpinned, ...warnings],
  };
}
