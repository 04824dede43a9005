import path from 'node:path';
import { Worker } from 'node:worker_threads';
import { messageOf } from '../core/errors.ts';
import type { KeepProblem } from './keep-tree.ts';
import type { FolderTask } from './rollout-folder.ts';

/** The same file where sources are compiled and where they are not. */
const entry = new URL(`./archive-worker${path.extname(import.meta.filename)}`, import.meta.url);

/** One is enough for a fast disk; another is started when so many folders wait for each. */
const longestLine = 4;
const mostThreads = 4;

/** The threads that write the archive: a slow disk, and a long file, hold up nobody else. */
export class ArchiveThreads {
  /** The first is there from the beginning: the first rollout does not pay for its start. */
  readonly #threads = [new ArchiveThread()];
  #closing: Promise<void> | null = null;

  /** As `saveFolder`. Rejects when its thread is gone. */
  async save(task: FolderTask): Promise<readonly KeepProblem[]> {
    if (this.#closing !== null) throw gone('it is closed');
    this.#threads.sort((a, b) => a.load - b.load);
    const [first = new ArchiveThread()] = this.#threads;
    if (first.load < longestLine || this.#threads.length >= mostThreads)
      return await first.save(task);
    const another = new ArchiveThread();
    this.#threads.push(another);
    return await another.save(task);
  }

  /** What was asked for before is written first. Idempotent. */
  close(): Promise<void> {
    this.#closing ??= Promise.all(this.#threads.map((one) => one.close())).then(() => undefined);
    return this.#closing;
  }
}

/** Answers come in the order of the tasks. */
class ArchiveThread {
  readonly #worker = new Worker(entry, { name: 'archive' });
  #waiting: PromiseWithResolvers<readonly KeepProblem[]>[] = [];
  readonly #exited = Promise.withResolvers<undefined>();
  /** Why nothing is written any more; null = it runs. */
  #ended: string | null = null;

  constructor() {
    this.#worker.on('message', (problems: readonly KeepProblem[]) =>
      this.#waiting.shift()?.resolve(problems),
    );
    this.#worker.on('error', (error) => (this.#ended ??= messageOf(error)));
    this.#worker.on('exit', () => {
      this.#ended ??= 'it has ended';
      for (const { reject } of this.#waiting.splice(0)) reject(gone(this.#ended));
      this.#exited.resolve(undefined);
    });
  }

  /** How many wait for it; one that is gone comes last. */
  get load(): number {
    return this.#ended === null ? this.#waiting.length : Infinity;
  }

  async save(task: FolderTask): Promise<readonly KeepProblem[]> {
    if (this.#ended !== null) throw gone(this.#ended);
    const waiting = Promise.withResolvers<readonly KeepProblem[]>();
    this.#worker.postMessage(task);
    this.#waiting.push(waiting);
    return await waiting.promise;
  }

  async close(): Promise<void> {
    await Promise.allSettled(this.#waiting.map(({ promise }) => promise));
    await this.#worker.terminate();
    await this.#exited.promise;
  }
}

function gone(why: string): Error {
  return new Error(`the thread of the archive is gone: ${why}`);
}
