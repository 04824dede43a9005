import type { TrialInputs } from '../trial/trial-options.ts';
import type { TaskEntry } from '../wire/harbor/task-entry.ts';
import type { TaskId } from '../wire/harbor/trial-result.ts';

/** What a task brings to its trials; skills belong to the agent and come later. */
export type TaskInputs = Omit<TrialInputs, 'skills'>;

/** A task of a job: named, perhaps not yet fetched, perhaps broken. A broken one fails its own trials only. */
export interface JobTask {
  /** As it goes into each trial's `config.json`: pinned, with its dataset. */
  readonly entry: TaskEntry;
  readonly name: string;
  readonly taskId: TaskId;
  /** Name of the dataset; null = named on its own. */
  readonly source: string | null;
  /** Loads and hashes. A success is remembered, a failure is tried again at the next call. */
  load(signal: AbortSignal): Promise<TaskInputs>;
}
