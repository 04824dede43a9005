import type { TrialInputs } from '../trial/trial-options.ts';
import type { TaskEntry } from '../wire/harbor/task-entry.ts';
import type { TaskId } from '../wire/harbor/trial-result.ts';

/** A task of a job: named, perhaps not yet fetched, perhaps broken. A broken one fails its own trials only. */
export interface JobTask {
  /** As it goes into each trial's `config.json`: pinned, with its dataset. */
  readonly entry: TaskEntry;
  readonly name: string;
  readonly taskId: TaskId;
  /** Name of the dataset; null = named on its own. */
  readonly source: string | null;
  /** Fetches, loads and hashes; later calls share the first one's outcome. */
  load(signal: AbortSignal): Promise<TrialInputs>;
}
