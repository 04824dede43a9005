/** Datasets that are a git repository: a registry.json in it, or the task folders directly under one of its folders. */
import { join, posix } from 'node:path';
import { RolloutError } from '../../core/errors.ts';
import type { DatasetEntry } from '../../wire/harbor/dataset-entry.ts';
import type { RegistryDataset } from '../../wire/harbor/registry.ts';
import { taskEntrySchema } from '../../wire/harbor/task-entry.ts';
import type { CacheEntries } from './cache-entries.ts';
import type { DatasetListing, DatasetTask } from './dataset.ts';
import { filterTasks } from './dataset-filters.ts';
import type { Git } from './git.ts';
import { GitClone } from './git-clone.ts';
import { resolveCommit } from './git-commits.ts';
import { chooseDataset, parseRegistryFile, registryListing } from './registry-dataset.ts';
import { parseRepositorySource, type RepositorySource } from './repository-source.ts';
import { isFullHash, repositoryPath } from './task-reference.ts';

export type RepositoryDataset = DatasetEntry & { readonly repo: string };

interface RepositoryDatasetOptions {
  readonly git: Git;
  readonly entries: CacheEntries;
  /** Where clones live while they are read. */
  readonly scratchDir: string;
  readonly signal: AbortSignal;
}

const defaultFolder = 'tasks';
const versionLength = 12;

/** Every task is pinned to the commit that the repository's ref is now. */
export async function listRepositoryDataset(
  dataset: RepositoryDataset,
  options: RepositoryDatasetOptions,
): Promise<DatasetListing> {
  const { git, entries, scratchDir, signal } = options;
  const source = parseRepositorySource(dataset.repo, 'repo');
  const { remote } = source;
  const commit = await resolveCommit(git, { remote, signal }, source.ref);
  const key = { root: scratchDir, key: `list ${remote.written}` };
  const listing = await entries.exclusively(key, signal, async (writer) => {
    const clone = await GitClone.make(git, {
      remote,
      dir: join(await writer.scratch(), 'clone'),
      signal,
    });
    await clone.fetch(commit);
    const tree = new CommitTree(clone, commit);
    return dataset.name === null
      ? listFolder(tree, source, dataset)
      : listRegistryFile(tree, source, { ...dataset, name: dataset.name });
  });
  const isPinned = source.ref !== null && isFullHash(source.ref);
  return isPinned ? listing : { ...listing, warnings: [...listing.warnings, unpinned(source)] };
}

/** One commit of a clone, read without checking it out. */
class CommitTree {
  readonly #clone: GitClone;
  readonly commit: string;

  constructor(clone: GitClone, commit: string) {
    this.#clone = clone;
    this.commit = commit;
  }

  /** All files under a folder (`.` = all), as paths from the root. */
  async files(folder: string): Promise<readonly string[]> {
    const where = folder === '.' ? [] : [`${folder}/`]; // ls-tree takes paths literally
    const names = await this.#clone.git([
      'ls-tree',
      '-r',
      '-z',
      '--name-only',
      this.commit,
      '--',
      ...where,
    ]);
    return names.split('\0').filter((name) => name !== '');
  }

  /** null when there is no such file. */
  async read(path: string): Promise<string | null> {
    const files = await this.files(posix.dirname(path));
    if (!files.includes(path)) return null;
    return this.#clone.git(['cat-file', 'blob', `${this.commit}:${path}`]);
  }
}

async function listFolder(
  tree: CommitTree,
  source: RepositorySource,
  dataset: RepositoryDataset,
): Promise<DatasetListing> {
  const folder = repositoryPath(dataset.path ?? source.subdir ?? defaultFolder);
  const prefix = folder === '.' ? '' : `${folder}/`;
  const name = `${source.label}/tree/${tree.commit}/${folder}`;
  const tasks: DatasetTask[] = [];
  for (const file of [...(await tree.files(folder))].sort()) {
    const [child, leaf, ...deeper] = file.slice(prefix.length).split('/');
    if (child === undefined || leaf !== 'task.toml' || deeper.length > 0) continue;
    const path = `${prefix}${child}`;
    tasks.push({ name: child, entry: pinnedEntry(source, tree.commit, { path, name, dataset }) });
  }
  return {
    kind: 'repository',
    name,
    version: tree.commit.slice(0, versionLength),
    digest: null,
    entries: filterTasks(tasks, dataset, name),
    metrics: [],
    filesDir: null,
    entry: dataset,
    warnings: [],
  };
}

async function listRegistryFile(
  tree: CommitTree,
  source: RepositorySource,
  dataset: RepositoryDataset & { readonly name: string },
): Promise<DatasetListing> {
  const given = repositoryPath(dataset.registry_path ?? source.subdir ?? 'registry.json');
  const path = given.endsWith('.json') ? given : posix.join(given, 'registry.json');
  const text = await tree.read(path);
  if (text === null)
    throw new RolloutError('DATASET_NOT_FOUND', `the repository holds no ${path}`, {
      phase: 'resolve',
      field: 'registry_path',
      remedy: 'Give the path of its registry.json, or no dataset name to take its task folders.',
    });
  const found = chooseDataset(parseRegistryFile(text, path), dataset);
  const own: RegistryDataset = {
    ...found,
    tasks: found.tasks.map((task) => ({
      ...task,
      path: task.git_url === null ? repositoryPath(task.path) : task.path,
      git_url: task.git_url ?? source.remote.written,
      git_commit_id: task.git_url === null ? tree.commit : task.git_commit_id,
    })),
  };
  return { ...registryListing(own, dataset, 'remote'), kind: 'repository', entry: dataset };
}

function pinnedEntry(
  { remote }: RepositorySource,
  commit: string,
  { path, name, dataset }: { path: string; name: string; dataset: DatasetEntry },
) {
  const { overwrite, download_dir } = dataset;
  const fields = { path, git_url: remote.written, git_commit_id: commit, source: name };
  return taskEntrySchema.parse({ ...fields, overwrite, download_dir });
}

function unpinned({ label, ref }: RepositorySource): string {
  const what = ref === null ? 'no commit is given' : `${ref} may move`;
  return `dataset ${label}: ${what}, so another run may get other tasks`;
}
