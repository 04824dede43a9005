import { join } from 'node:path';
import type { Clock } from '../../core/clock.ts';
import { attribute, RolloutError } from '../../core/errors.ts';
import { Limiter } from '../../core/limiter.ts';
import type { LockPort } from '../../core/lock.ts';
import type { Logger } from '../../core/logger.ts';
import type { DatasetEntry } from '../../wire/harbor/dataset-entry.ts';
import type { TaskEntry } from '../../wire/harbor/task-entry.ts';
import { CacheEntries, hasEntry } from './cache-entries.ts';
import type { DatasetListing, ResolvedDataset } from './dataset.ts';
import { DatasetLister } from './dataset-lister.ts';
import type { Git } from './git.ts';
import { GitTasks } from './git-tasks.ts';
import { HttpRequests, type Fetch } from './http-requests.ts';
import { packageDir, PackageTasks } from './package-tasks.ts';
import type { RegistryClient } from './registry-client.ts';
import { registryNotConfigured } from './registry-settings.ts';
import { gitTask, localTask, packageTask, type ResolvedTask } from './resolved-task.ts';
import {
  readTaskReference,
  type GitTask,
  type LocalTask,
  type PackageTask,
  type TaskReference,
} from './task-reference.ts';
import { defaultUnpackLimits, type UnpackLimits } from './unpack-archive.ts';

export interface ReferenceResolverOptions {
  /** Root of all caches, for example `~/.cache/slipway`. */
  readonly cacheDir: string;
  /** What relative paths are relative to. */
  readonly baseDir: string;
  readonly locks: LockPort;
  /** null = no registry is configured: packages and registry datasets throw REGISTRY_NOT_CONFIGURED. */
  readonly registry: RegistryClient | null;
  readonly git: Git;
  /** For registry.json files given by address. */
  readonly fetch: Fetch;
  readonly clock: Clock;
  readonly logger: Logger;
  /** Package downloads at once. Default 100. */
  readonly maxDownloads?: number;
  readonly unpackLimits?: UnpackLimits;
}

export interface ResolveOptions {
  readonly signal: AbortSignal;
  /** Called after each task, found or failed. */
  readonly onProgress?: (done: number, total: number) => void;
}

/** Repositories at once: a clone keeps a processor busy. */
const maxClones = 4;

type Settled = ResolvedTask | RolloutError;

/**
 * Follows task and dataset references to folders on this machine. Local tasks are used in place; everything else lands in the cache,
 * where an entry never changes once it is there. May be used concurrently, also by several processes on one cache.
 */
export class ReferenceResolver {
  readonly #options: ReferenceResolverOptions;
  readonly #gitTasks: GitTasks;
  readonly #packages: PackageTasks | null;
  readonly #datasets: DatasetLister;
  readonly #downloads: Limiter;
  readonly #clones = new Limiter(maxClones);

  constructor(options: ReferenceResolverOptions) {
    const { cacheDir, baseDir, git, registry } = options;
    this.#options = options;
    const entries = new CacheEntries(options.locks);
    this.#gitTasks = new GitTasks(git, entries);
    const limits = options.unpackLimits ?? defaultUnpackLimits;
    this.#packages = registry === null ? null : new PackageTasks({ registry, entries, limits });
    const http = new HttpRequests({ fetch: options.fetch, clock: options.clock });
    const scratchDir = join(cacheDir, 'repositories');
    this.#datasets = new DatasetLister({
      cacheDir,
      scratchDir,
      baseDir,
      git,
      registry,
      http,
      entries,
      maxFileBytes: limits.packedBytes,
    });
    this.#downloads = new Limiter(options.maxDownloads ?? 100);
  }

  /** All tasks in the order of their references. Throws the first failure; see {@link settleTasks}. */
  async resolveTasks(
    references: readonly TaskEntry[],
    options: ResolveOptions,
  ): Promise<readonly ResolvedTask[]> {
    const tasks: ResolvedTask[] = [];
    for (const settled of await this.settleTasks(references, options)) {
      if (settled instanceof RolloutError) throw settled;
      tasks.push(settled);
    }
    return tasks;
  }

  /**
   * For each reference, in order, the task or what kept it away: TASK_NOT_FOUND, REFERENCE_INVALID, GIT_FAILED,
   * REGISTRY_NOT_CONFIGURED, REGISTRY_UNAVAILABLE, PACKAGE_NOT_FOUND, PACKAGE_DIGEST_MISMATCH, ARCHIVE_UNSAFE, LOCK_TIMEOUT, DISK_FULL.
   * Throws only the reason of `signal`. Warnings are also logged.
   */
  async settleTasks(
    references: readonly TaskEntry[],
    { signal, onProgress }: ResolveOptions,
  ): Promise<readonly Settled[]> {
    signal.throwIfAborted();
    const settled = new Array<Settled | undefined>(references.length);
    let done = 0;
    const settle = (index: number, outcome: Settled): void => {
      settled[index] = outcome;
      done += 1;
      onProgress?.(done, references.length);
    };
    const work: Promise<void>[] = [];
    const repositories = new Map<string, { index: number; task: GitTask }[]>();
    for (const [index, entry] of references.entries()) {
      const reference = this.#read(entry);
      if (reference instanceof RolloutError) settle(index, reference);
      else if (reference.kind === 'git') {
        const key = JSON.stringify([reference.remote.written, this.#root(reference)]);
        const group = repositories.get(key) ?? [];
        repositories.set(key, [...group, { index, task: reference }]);
      } else work.push(this.#single(reference, signal).then((outcome) => settle(index, outcome)));
    }
    for (const group of repositories.values())
      work.push(
        this.#repository(group, signal).then((outcomes) => {
          for (const { index, task } of group) settle(index, outcomes.get(task) ?? lost());
        }),
      );
    await Promise.allSettled(work); // none may outlive this call; the first failure is thrown below
    await Promise.all(work);
    const complete = settled.map((outcome) => outcome ?? lost());
    this.#logWarnings(complete);
    return complete;
  }

  /** The tasks of a dataset without fetching them, filters applied. Throws DATASET_NOT_FOUND, DATASET_EMPTY, DATASET_TASKS_UNAVAILABLE and what references throw. */
  listDataset(dataset: DatasetEntry, options: ResolveOptions): Promise<DatasetListing> {
    return this.#datasets.list(dataset, options.signal);
  }

  /** {@link listDataset}, then {@link resolveTasks}. */
  async resolveDataset(dataset: DatasetEntry, options: ResolveOptions): Promise<ResolvedDataset> {
    const listing = await this.listDataset(dataset, options);
    return { ...listing, tasks: await this.resolveTasks(listing.entries, options) };
  }

  #read(entry: TaskEntry): TaskReference | RolloutError {
    try {
      return readTaskReference(entry, this.#options.baseDir);
    } catch (error) {
      return attribute(error, 'REFERENCE_INVALID', 'resolve', 'a task reference');
    }
  }

  #root(reference: TaskReference): string {
    return reference.downloadDir ?? join(this.#options.cacheDir, 'tasks');
  }

  async #single(reference: LocalTask | PackageTask, signal: AbortSignal): Promise<Settled> {
    try {
      return reference.kind === 'local'
        ? await localTask(reference)
        : await this.#downloads.run(signal, () => this.#package(reference, signal));
    } catch (error) {
      signal.throwIfAborted();
      return attribute(error, 'INTERNAL', 'resolve', `task ${reference.name}`);
    }
  }

  /** Tasks of one repository and one root. */
  async #repository(
    group: readonly { readonly task: GitTask }[],
    signal: AbortSignal,
  ): Promise<ReadonlyMap<GitTask, Settled>> {
    const [first] = group;
    if (first === undefined) return new Map();
    const { remote } = first.task;
    const options = { root: this.#root(first.task), signal };
    const tasks = group.map(({ task }) => task);
    const outcomes = await this.#clones.run(signal, () =>
      this.#gitTasks.fetch(remote, tasks, options),
    );
    const settled = new Map<GitTask, Settled>();
    for (const [task, outcome] of outcomes)
      settled.set(task, outcome instanceof RolloutError ? outcome : gitTask(task, outcome));
    return settled;
  }

  async #package(task: PackageTask, signal: AbortSignal): Promise<ResolvedTask> {
    const root = this.#root(task);
    const { ref } = task.package;
    if (ref.kind === 'digest' && !task.overwrite) {
      // The content is named by its hash: when it is here, the registry has nothing to add.
      const dir = packageDir(root, task.package, ref.text);
      if (await hasEntry(dir)) return packageTask(task, { dir, digest: ref.text, warnings: [] });
    }
    if (this.#packages === null) throw registryNotConfigured();
    const { overwrite } = task;
    const found = await this.#packages.fetch(task.package, { root, overwrite, signal });
    return packageTask(task, found);
  }

  #logWarnings(settled: readonly Settled[]): void {
    for (const task of settled)
      if (!(task instanceof RolloutError))
        for (const warning of task.warnings) this.#options.logger.log('warn', warning);
  }
}

function lost(): RolloutError {
  return new RolloutError('INTERNAL', 'a task reference was not settled', { phase: 'resolve' });
}
