import path from 'node:path';
import { Worker } from 'node:worker_threads';
import { messageOf } from '../core/errors.ts';
import type { KeepProblem } from './keep-tree.ts';
import type { FolderTask } from './rollout-folder.ts';

export interface ToArchive {
  readonly number: number;
  readonly task: FolderTask;
}

export interface FromArchive {
  readonly number: number;
  readonly problems: readonly KeepProblem[];
}

/** The same file where sources are compiled and where they are not. */
const entry = new URL(`./archive-worker${path.extname(import.meta.filename)}`, import.meta.url);

/** This side of the thread that writes the archive: a slow disk, and a long file, hold up nobody here. */
export class ArchiveThread {
  readonly #worker = new Worker(entry, { name: 'archive' });
  readonly #waiting = new Map<number, PromiseWithResolvers<readonly KeepProblem[]>>();
  readonly #exited = Promise.withResolvers<undefined>();
  #lastNumber = 0;
  /** Why nothing is written any more; null = it runs. */
  #ended: string | null = null;
  #closing: Promise<void> | null = null;

  constructor() {
    this.#worker.on('message', ({ number, problems }: FromArchive) => {
      this.#waiting.get(number)?.resolve(problems);
      this.#waiting.delete(number);
    });
    this.#worker.on('error', (error) => (this.#ended ??= messageOf(error)));
    this.#worker.on('exit', () => {
      this.#ended ??= 'it has ended';
      for (const { reject } of this.#waiting.values()) reject(gone(this.#ended));
      this.#waiting.clear();
      this.#exited.resolve(undefined);
    });
  }

  /** As `saveFolder`. Rejects when the thread is gone. */
  async save(task: FolderTask): Promise<readonly KeepProblem[]> {
    if (this.#ended !== null) throw gone(this.#ended);
    if (this.#closing !== null) throw gone('it is closed');
    this.#lastNumber += 1;
    const waiting = Promise.withResolvers<readonly KeepProblem[]>();
    this.#worker.postMessage({ number: this.#lastNumber, task } satisfies ToArchive);
    this.#waiting.set(this.#lastNumber, waiting);
    return await waiting.promise;
  }

  /** What was asked for before is written first. Idempotent. */
  close(): Promise<void> {
    this.#closing ??= this.#closeNow();
    return this.#closing;
  }

  async #closeNow(): Promise<void> {
    await Promise.allSettled([...this.#waiting.values()].map(({ promise }) => promise));
    await this.#worker.terminate();
    await this.#exited.promise;
  }
}

function gone(why: string): Error {
  return new Error(`the thread of the archive is gone: ${why}`);
}
