import { readdir } from 'node:fs/promises';
import { basename, join, resolve } from 'node:path';
import { RolloutError } from '../../core/errors.ts';
import type { DatasetEntry } from '../../wire/harbor/dataset-entry.ts';
import { taskEntrySchema } from '../../wire/harbor/task-entry.ts';
import { isFile } from '../file-presence.ts';
import { taskTomlName } from '../read-task-toml.ts';
import type { DatasetListing, DatasetTask } from './dataset.ts';
import { filterTasks } from './dataset-filters.ts';

interface LocalDatasetOptions {
  readonly baseDir: string;
  readonly signal: AbortSignal;
}

/**
 * A folder of task folders, in the order of their names (Harbor takes the order of the file system). Every child with a task.toml is
 * a task: a broken one becomes a trial that ends with its error, where Harbor passes over it in silence.
 */
export async function listLocalDataset(
  dataset: DatasetEntry & { readonly path: string },
  { baseDir, signal }: LocalDatasetOptions,
): Promise<DatasetListing> {
  const dir = resolve(baseDir, dataset.path);
  const name = basename(dir);
  const children = await readdir(dir, { withFileTypes: true }).catch((error: unknown) => {
    throw new RolloutError('DATASET_NOT_FOUND', `${dir} is not a folder that can be read`, {
      phase: 'resolve',
      field: 'path',
      cause: error,
      remedy: 'Check the path of the dataset.',
    });
  });
  const tasks: DatasetTask[] = [];
  for (const child of children.map((entry) => entry.name).sort()) {
    const path = join(dir, child);
    signal.throwIfAborted();
    if (await isFile(join(path, taskTomlName)))
      tasks.push({ name: child, entry: taskEntrySchema.parse({ path, source: name }) });
  }
  if (tasks.length === 0)
    throw new RolloutError('DATASET_EMPTY', `no folder in ${dir} holds a ${taskTomlName}`, {
      phase: 'resolve',
      field: 'path',
      remedy: 'Name a task folder, or a folder of them.',
    });
  return {
    kind: 'local',
    name,
    version: null,
    digest: null,
    entries: filterTasks(tasks, dataset, name),
    metrics: [],
    filesDir: null,
    entry: dataset,
    warnings: [],
  };
}
