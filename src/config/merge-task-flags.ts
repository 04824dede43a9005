import { existsSync } from 'node:fs';
import { join } from 'node:path';
import type { Fields } from './fields.ts';
import { listOf, parseNumber, textOf } from './flag-values.ts';
import type { Problems } from './problems.ts';
import { runFlags, type FlagValues } from './run-flags.ts';

/** Flags that name tasks replace the tasks and datasets of the job file; filters belong to the datasets that flags name. */
export function mergeTaskFlags(job: Fields, flags: FlagValues, problems: Problems): void {
  const path = textOf(flags, '--path');
  const gitUrl = textOf(flags, '--task-git-url');
  const repo = textOf(flags, '--repo');
  const tasks = listOf(flags, '--task');
  const datasets = listOf(flags, '--dataset');
  const filters = filtersOf(flags, problems);
  checkMix({ path, gitUrl, repo, tasks, datasets, filters, flags }, problems);
  if (path === null && repo === null && tasks.length === 0 && datasets.length === 0) return;
  delete job['tasks'];
  delete job['datasets'];
  if (tasks.length > 0) job['tasks'] = tasks.map((text) => packageReference(text));
  else if (path !== null && gitUrl !== null) {
    const commit = textOf(flags, '--task-git-commit');
    job['tasks'] = [
      { path, git_url: gitUrl, ...(commit === null ? {} : { git_commit_id: commit }) },
    ];
  } else if (path !== null && repo === null && isTask(path)) job['tasks'] = [{ path }];
  else job['datasets'] = datasetEntries({ path, repo, datasets, filters, flags });
}

/** A folder with a task.toml is a task however broken; so that its own mistake is reported, not "no tasks found". */
function isTask(path: string): boolean {
  return existsSync(join(path, 'task.toml')) || !existsSync(path);
}

function packageReference(text: string): Fields {
  const at = text.lastIndexOf('@');
  return at < 1 ? { name: text } : { name: text.slice(0, at), ref: text.slice(at + 1) };
}

/** `name@…` is a version of a plain dataset and a reference of a package. */
function datasetReference(text: string): Fields {
  const { name, ref } = packageReference(text) as { name: string; ref?: string };
  if (ref === undefined) return { name };
  return name.includes('/') ? { name, ref } : { name, version: ref };
}

interface TaskFlags {
  readonly path: string | null;
  readonly repo: string | null;
  readonly datasets: readonly string[];
  readonly filters: Fields;
  readonly flags: FlagValues;
}

function datasetEntries({ path, repo, datasets, filters, flags }: TaskFlags): Fields[] {
  const url = textOf(flags, '--registry-url');
  const file = textOf(flags, '--registry-path');
  const shared: Fields = {
    ...(repo === null ? {} : { repo }),
    ...(path === null ? {} : { path }),
    ...(url === null ? {} : { registry_url: url }),
    ...(file === null ? {} : { registry_path: file }),
    ...filters,
  };
  return datasets.length === 0
    ? [shared]
    : datasets.map((text) => ({ ...datasetReference(text), ...shared }));
}

function filtersOf(flags: FlagValues, problems: Problems): Fields {
  const included = listOf(flags, '--include-task-name');
  const excluded = listOf(flags, '--exclude-task-name');
  const text = textOf(flags, '--n-tasks');
  const flag = runFlags.find(({ name }) => name === '--n-tasks');
  const count = text === null || flag === undefined ? null : parseNumber(text, flag, problems);
  return {
    ...(included.length === 0 ? {} : { task_names: included }),
    ...(excluded.length === 0 ? {} : { exclude_task_names: excluded }),
    ...(count === null ? {} : { n_tasks: count }),
  };
}

function checkMix(
  given: TaskFlags & { readonly gitUrl: string | null; readonly tasks: readonly string[] },
  problems: Problems,
): void {
  const { path, repo, gitUrl, tasks, datasets, filters, flags } = given;
  const sources = path !== null || repo !== null || datasets.length > 0 || tasks.length > 0;
  if (Object.keys(filters).length > 0 && !sources)
    problems.add(
      '--include-task-name',
      'a filter needs a task source on the command line',
      'Add --path, --dataset, --repo or --task.',
    );
  if (tasks.length > 0 && (datasets.length > 0 || repo !== null))
    problems.add('--task', 'tasks and datasets together', 'Give --task or --dataset, not both.');
  if (path !== null && repo === null && (tasks.length > 0 || datasets.length > 0))
    problems.add(
      '--path',
      'a path together with --task or --dataset',
      'Give one of --path, --task and --dataset.',
    );
  if (gitUrl !== null && path === null)
    problems.add('--task-git-url', 'needs the path of the task in it', 'Add --path.');
  if (flags['--task-git-commit'] !== undefined && gitUrl === null)
    problems.add('--task-git-commit', 'needs a repository', 'Add --task-git-url.');
}
