import { basename, join } from 'node:path';
import { attribute, RolloutError } from '../../core/errors.ts';
import { CacheEntries, hasEntry, type EntryWriter } from './cache-entries.ts';
import type { Git } from './git.ts';
import { GitClone } from './git-clone.ts';
import { resolveCommit } from './git-commits.ts';
import { fetchLfsFiles } from './lfs-files.ts';
import type { GitRemote } from './git-url.ts';
import { shortUuid } from './short-uuid.ts';
import type { GitTask } from './task-reference.ts';
import { gitTaskId } from './task-id.ts';

export interface FetchedTask {
  readonly dir: string;
  readonly commit: string;
  readonly warnings: readonly string[];
}

/** A task whose commit is known and whose place in the cache is therefore fixed. */
interface PinnedTask {
  readonly task: GitTask;
  readonly commit: string;
  readonly dir: string;
}

export type GitOutcome = ReadonlyMap<GitTask, FetchedTask | RolloutError>;

/** Fetches tasks out of git repositories: one partial clone per repository, whatever the number of tasks and commits. */
export class GitTasks {
  readonly #git: Git;
  readonly #entries: CacheEntries;

  constructor(git: Git, entries: CacheEntries) {
    this.#git = git;
    this.#entries = entries;
  }

  /**
   * Tasks of one repository (equal `remote.written`) into one root. Each task gets its folder or its own error; only
   * the reason of `signal` is thrown.
   */
  async fetch(
    remote: GitRemote,
    tasks: readonly GitTask[],
    { root, signal }: { readonly root: string; readonly signal: AbortSignal },
  ): Promise<GitOutcome> {
    const outcome = new Map<GitTask, FetchedTask | RolloutError>();
    const pinned = await this.#pin(remote, tasks, root, outcome, signal);
    const missing: PinnedTask[] = [];
    for (const pin of pinned) {
      if (!pin.task.overwrite && (await hasEntry(pin.dir))) outcome.set(pin.task, fetched(pin, []));
      else missing.push(pin);
    }
    if (missing.length > 0)
      await this.#entries
        .exclusively({ root, key: `git ${remote.written}` }, signal, (writer) =>
          this.#download(remote, missing, writer, outcome, signal),
        )
        .catch((error: unknown) => {
          const failure = failureOf(error, signal);
          for (const { task } of missing) if (!outcome.has(task)) outcome.set(task, failure);
        });
    return outcome;
  }

  async #pin(
    remote: GitRemote,
    tasks: readonly GitTask[],
    root: string,
    outcome: Map<GitTask, FetchedTask | RolloutError>,
    signal: AbortSignal,
  ): Promise<PinnedTask[]> {
    const pinned: PinnedTask[] = [];
    for (const [ref, group] of Map.groupBy(tasks, (task) => task.commit)) {
      try {
        const commit = await resolveCommit(this.#git, { remote, signal }, ref);
        for (const task of group) {
          const id = gitTaskId({ url: remote.written, commit, path: task.path });
          const name = task.path === '.' ? task.name : basename(task.path);
          pinned.push({ task, commit, dir: join(root, shortUuid(id), name) });
        }
      } catch (error) {
        const failure = failureOf(error, signal);
        for (const task of group) outcome.set(task, failure);
      }
    }
    return pinned;
  }

  async #download(
    remote: GitRemote,
    pinned: readonly PinnedTask[],
    writer: EntryWriter,
    outcome: Map<GitTask, FetchedTask | RolloutError>,
    signal: AbortSignal,
  ): Promise<void> {
    const missing: PinnedTask[] = [];
    for (const pin of pinned) {
      // Another process may have filled it while this one waited for the lock.
      if (!pin.task.overwrite && (await hasEntry(pin.dir))) outcome.set(pin.task, fetched(pin, []));
      else missing.push(pin);
    }
    if (missing.length === 0) return;
    const scratch = await writer.scratch();
    const clone = await GitClone.make(this.#git, { remote, dir: join(scratch, 'clone'), signal });
    await clone.chooseFolders(missing.map(({ task }) => task.path));
    for (const [commit, group] of Map.groupBy(missing, (pin) => pin.commit)) {
      try {
        await clone.checkout(commit);
      } catch (error) {
        const failure = failureOf(error, signal);
        for (const { task } of group) outcome.set(task, failure);
        continue;
      }
      for (const [, same] of Map.groupBy(group, (pin) => pin.dir)) {
        const [pin] = same;
        if (pin === undefined) continue;
        const placed = await this.#place(clone, pin, writer, signal);
        for (const { task } of same) outcome.set(task, placed);
      }
    }
  }

  async #place(
    clone: GitClone,
    pin: PinnedTask,
    writer: EntryWriter,
    signal: AbortSignal,
  ): Promise<FetchedTask | RolloutError> {
    try {
      signal.throwIfAborted();
      if (!(await clone.hasFolder(pin.task.path))) throw missingFolder(pin.task);
      const warnings = await fetchLfsFiles(clone, pin.task, signal);
      const filled = join(await writer.scratch(), 'task');
      await clone.copyFolder(pin.task.path, filled);
      await writer.place(filled, pin.dir);
      return fetched(pin, warnings);
    } catch (error) {
      return failureOf(error, signal);
    }
  }
}

function fetched({ commit, dir }: PinnedTask, warnings: readonly string[]): FetchedTask {
  return { dir, commit, warnings };
}

function failureOf(error: unknown, signal: AbortSignal): RolloutError {
  signal.throwIfAborted();
  return attribute(error, 'GIT_FAILED', 'resolve', 'the task could not be fetched');
}

function missingFolder(task: GitTask): RolloutError {
  return new RolloutError('TASK_NOT_FOUND', `the repository holds no folder ${task.path}`, {
    phase: 'resolve',
    field: 'path',
    remedy: 'Check the path and the commit.',
  });
}
