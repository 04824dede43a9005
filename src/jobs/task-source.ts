import type { JobConfig, MetricConfig } from '../wire/harbor/job-config.ts';
import type { DatasetEntry } from '../wire/harbor/dataset-entry.ts';
import type { JobTask } from './job-task.ts';

/** Finds the tasks of a job. */
export interface TaskSource {
  /**
   * Resolves names and datasets, in the order of the plan: tasks first, then datasets. A task that cannot be fetched or read is
   * still answered and fails when it is loaded; a dataset that cannot be listed rejects.
   */
  tasks(config: JobConfig, signal: AbortSignal): Promise<FoundTasks>;
}

export interface FoundTasks {
  readonly tasks: readonly JobTask[];
  /** Those of the configuration in its order, pinned to what was found: the digest of a package, the version of a registry's. */
  readonly datasets: readonly DatasetEntry[];
  /** For people: unpinned references and the like. Never a URL or a credential. */
  readonly warnings: readonly string[];
  /** Metrics that datasets bring along. */
  readonly metrics: readonly MetricConfig[];
}
