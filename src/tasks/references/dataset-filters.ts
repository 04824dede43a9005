import { RolloutError } from '../../core/errors.ts';
import { fnmatchRegExp } from '../../core/fnmatch.ts';
import type { DatasetEntry } from '../../wire/harbor/dataset-entry.ts';
import type { TaskEntry } from '../../wire/harbor/task-entry.ts';
import type { DatasetTask } from './dataset.ts';

const exampleCount = 5;

/**
 * The tasks that a dataset entry asks for: those matching one of `task_names`, without those matching one of
 * `exclude_task_names`, of these the first `n_tasks`. Throws DATASET_EMPTY when none is left, with names that would have matched.
 */
export function filterTasks(
  tasks: readonly DatasetTask[],
  dataset: DatasetEntry,
  name: string,
): readonly TaskEntry[] {
  if (tasks.length === 0) throw empty(`dataset ${name} holds no task`, null);
  const included = matching(tasks, dataset.task_names);
  if (included.length === 0) {
    const examples = tasks.slice(0, exampleCount).map((task) => task.name);
    throw empty(
      `no task of dataset ${name} matches ${(dataset.task_names ?? []).join(', ')}`,
      'task_names',
      `Some of its ${tasks.length} tasks: ${examples.join(', ')}.`,
    );
  }
  const excluded = new Set(
    dataset.exclude_task_names === null || dataset.exclude_task_names.length === 0
      ? []
      : matching(tasks, dataset.exclude_task_names),
  );
  const left = included.filter((task) => !excluded.has(task));
  if (left.length === 0)
    throw empty(`exclude_task_names leaves no task of dataset ${name}`, 'exclude_task_names');
  return left.slice(0, dataset.n_tasks ?? left.length).map((task) => task.entry);
}

/** No pattern at all lets everything through. */
function matching(
  tasks: readonly DatasetTask[],
  patterns: readonly string[] | null,
): readonly DatasetTask[] {
  if (patterns === null || patterns.length === 0) return tasks;
  const expressions = patterns.map(fnmatchRegExp);
  return tasks.filter(({ name }) => expressions.some((expression) => expression.test(name)));
}

function empty(message: string, field: string | null, remedy?: string): RolloutError {
  return new RolloutError('DATASET_EMPTY', message, {
    phase: 'resolve',
    ...(field === null ? {} : { field }),
    ...(remedy === undefined ? {} : { remedy }),
  });
}
