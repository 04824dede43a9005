import type { DatasetEntry } from '../../wire/harbor/dataset-entry.ts';
import type { CacheEntries } from './cache-entries.ts';
import type { DatasetListing } from './dataset.ts';
import type { Git } from './git.ts';
import type { HttpRequests } from './http-requests.ts';
import { listLocalDataset } from './local-dataset.ts';
import { listPackageDataset } from './package-dataset.ts';
import type { RegistryClient } from './registry-client.ts';
import { listRegistryDataset } from './registry-dataset.ts';
import { registryNotConfigured } from './registry-settings.ts';
import { listRepositoryDataset } from './repository-dataset.ts';
import { invalid } from './task-reference.ts';

export interface DatasetListerOptions {
  readonly cacheDir: string;
  readonly scratchDir: string;
  readonly baseDir: string;
  readonly git: Git;
  readonly registry: RegistryClient | null;
  readonly http: HttpRequests;
  readonly entries: CacheEntries;
  readonly maxFileBytes: number;
}

/** Finds out which tasks a dataset has, by the kind of its entry. */
export class DatasetLister {
  readonly #options: DatasetListerOptions;

  constructor(options: DatasetListerOptions) {
    this.#options = options;
  }

  async list(dataset: DatasetEntry, signal: AbortSignal): Promise<DatasetListing> {
    const options = { ...this.#options, signal };
    const { repo, path, name } = dataset;
    if (repo !== null) return listRepositoryDataset({ ...dataset, repo }, options);
    if (path !== null) return listLocalDataset({ ...dataset, path }, options);
    if (name === null) throw invalid('name', 'a dataset needs a path, a name or a repo');
    if (!name.includes('/')) return listRegistryDataset({ ...dataset, name }, options);
    const { registry } = options;
    if (registry === null) throw registryNotConfigured();
    return listPackageDataset({ ...dataset, name }, { ...options, registry });
  }
}
