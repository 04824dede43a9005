/** Tasks of a job found through references: paths, git repositories, packages and datasets. */
import { existsSync } from 'node:fs';
import { join, posix } from 'node:path';
import { RolloutError } from '../core/errors.ts';
import { contentHash } from '../tasks/content-hash.ts';
import { loadTask } from '../tasks/load-task.ts';
import type { DatasetListing } from '../tasks/references/dataset.ts';
import type { ReferenceResolver } from '../tasks/references/reference-resolver.ts';
import type { ResolvedTask } from '../tasks/references/resolved-task.ts';
import { taskChecksum } from '../tasks/task-checksum.ts';
import {
  metricConfigSchema,
  type JobConfig,
  type MetricConfig,
} from '../wire/harbor/job-config.ts';
import { dumpTaskEntry } from '../wire/harbor/dump.ts';
import type { DatasetEntry } from '../wire/harbor/dataset-entry.ts';
import type { TaskEntry } from '../wire/harbor/task-entry.ts';
import type { TaskLock } from '../wire/harbor/trial-lock.ts';
import type { TaskId } from '../wire/harbor/trial-result.ts';
import type { Clock } from '../core/clock.ts';
import type { JobTask, TaskInputs } from './job-task.ts';
import { LoadedTasks } from './loaded-tasks.ts';
import type { FoundTasks, TaskSource } from './task-source.ts';

export class ReferenceTasks implements TaskSource {
  readonly #resolver: ReferenceResolver;
  readonly #loaded: LoadedTasks;

  constructor(resolver: ReferenceResolver, clock: Pick<Clock, 'now'>) {
    this.#resolver = resolver;
    this.#loaded = new LoadedTasks(clock);
  }

  async tasks(config: JobConfig, signal: AbortSignal): Promise<FoundTasks> {
    const entries: TaskEntry[] = [...config.tasks];
    const warnings: string[] = [];
    const metrics: MetricConfig[] = [];
    const datasets: DatasetEntry[] = [];
    for (const dataset of config.datasets) {
      const listing = await this.#resolver.listDataset(dataset, { signal });
      entries.push(...listing.entries);
      datasets.push(listing.entry);
      warnings.push(...listing.warnings);
      metrics.push(...metricsOf(listing));
    }
    const settled = await this.#resolver.settleTasks(entries, { signal });
    const tasks = settled.map((task, index) => {
      const entry = entries[index];
      if (entry === undefined) throw new TypeError('as many tasks as references');
      return task instanceof RolloutError
        ? lostTask(entry, task)
        : foundTask(task, config, this.#loaded);
    });
    for (const task of settled)
      if (!(task instanceof RolloutError)) warnings.push(...task.warnings);
    return { tasks, datasets, warnings: [...new Set(warnings)], metrics };
  }
}

function metricsOf({ metrics, filesDir }: DatasetListing): MetricConfig[] {
  const named = metrics.flatMap((metric) => {
    const known = metricConfigSchema.safeParse(metric);
    return known.success ? [known.data] : [];
  });
  const script = filesDir === null ? null : join(filesDir, 'metric.py');
  return script !== null && existsSync(script)
    ? [...named, { type: 'uv-script', kwargs: { script_path: script } }]
    : named;
}

/** A reference that led nowhere: its trials end with the reason. */
function lostTask(entry: TaskEntry, problem: RolloutError): JobTask {
  const name = entry.name ?? posix.basename(entry.path ?? 'task');
  return {
    entry: dumpTaskEntry(entry),
    name,
    taskId: taskIdOf(dumpTaskEntry(entry)),
    source: entry.source,
    load: () => Promise.reject(problem),
  };
}

function foundTask(found: ResolvedTask, config: JobConfig, known: LoadedTasks): JobTask {
  let loaded: Promise<TaskInputs> | null = null;
  const options = {
    dir: found.dir,
    isVerificationEnabled: !config.verifier.disable && !config.install_only,
    extraInstructions: config.extra_instructions,
    extraInstructionPaths: config.extra_instruction_paths,
  };
  const read = async (signal: AbortSignal): Promise<TaskInputs> => {
    const task = await loadTask({ ...options, signal });
    const digest = found.digest ?? (await contentHash(found.dir, signal));
    const taskLock = lockOf(found, { name: task.name, digest });
    return { task, taskLock, checksum: await taskChecksum(found.dir, signal) };
  };
  const load = async (signal: AbortSignal): Promise<TaskInputs> => {
    signal.throwIfAborted();
    // Files elsewhere may change without the folder.
    if (options.extraInstructionPaths.length > 0) return await read(signal);
    const key = JSON.stringify([options, found]);
    return await known.load(key, { dir: found.dir, read: () => read(signal) });
  };
  return {
    entry: found.entry,
    name: found.name,
    taskId: taskIdOf(found.entry),
    source: found.source,
    load: (signal) => {
      loaded ??= load(signal).catch((error: unknown) => {
        loaded = null;
        throw error;
      });
      return loaded;
    },
  };
}

function lockOf(
  found: ResolvedTask,
  loaded: { readonly name: string; readonly digest: string },
): TaskLock {
  return {
    name: loaded.name,
    version: null,
    type: found.kind,
    digest: loaded.digest,
    source: found.source,
    path: found.path,
    git_url: found.gitUrl,
    git_commit_id: found.gitCommit,
  };
}

function taskIdOf(entry: TaskEntry): TaskId {
  if (entry.name !== null) {
    const [org = '', name = ''] = entry.name.split('/');
    return { org, name, ref: entry.ref };
  }
  const path = entry.path ?? '.';
  return entry.git_url === null
    ? { path }
    : { git_url: entry.git_url, git_commit_id: entry.git_commit_id, path };
}
