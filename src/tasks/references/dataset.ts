import type { DatasetEntry } from '../../wire/harbor/dataset-entry.ts';
import type { RegistryMetric } from '../../wire/harbor/registry.ts';
import type { TaskEntry } from '../../wire/harbor/task-entry.ts';
import type { ResolvedTask } from './resolved-task.ts';

/** Which tasks a dataset has, filters applied, nothing fetched. */
export interface DatasetListing {
  readonly kind: 'local' | 'repository' | 'registry' | 'package';
  /** What its tasks carry as `source`: folder name, registry name, `org/name`, or `host/org/name/tree/<commit>/<folder>`. */
  readonly name: string;
  readonly version: string | null;
  /** Content hash of a package, `sha256:<hex>`. */
  readonly digest: string | null;
  readonly entries: readonly TaskEntry[];
  /** As the registry lists them; empty when it says nothing. */
  readonly metrics: readonly RegistryMetric[];
  /** Folder with the files of a dataset package, such as `metric.py`. */
  readonly filesDir: string | null;
  /** The entry pinned to what was found: `ref` of a package is its digest. */
  readonly entry: DatasetEntry;
  readonly warnings: readonly string[];
}

export interface ResolvedDataset extends DatasetListing {
  readonly tasks: readonly ResolvedTask[];
}

/** A task of a dataset before the filters. */
export interface DatasetTask {
  /** What the filters look at: folder name, or `org/name`. */
  readonly name: string;
  readonly entry: TaskEntry;
}
