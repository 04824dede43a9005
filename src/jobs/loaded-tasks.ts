import type { Clock } from '../core/clock.ts';
import { folderStamp } from '../tasks/folder-stamp.ts';
import type { TaskInputs } from './job-task.ts';

/** Enough for the tasks that are asked for again and again; each is some kilobytes. */
const mostKept = 256;

interface Kept {
  readonly stamp: string;
  readonly inputs: Promise<TaskInputs>;
}

/** What was read of tasks, until something in their folders changes: a server is asked for the same ones all the time. */
export class LoadedTasks {
  readonly #clock: Pick<Clock, 'now'>;
  /** The one that was asked for longest ago first. */
  readonly #kept = new Map<string, Kept>();

  constructor(clock: Pick<Clock, 'now'>) {
    this.#clock = clock;
  }

  /** `key`: everything that `read` depends on beside what lies in `dir`. Rejects only with what the asker's own `read` says. */
  async load(
    key: string,
    { dir, read }: { readonly dir: string; readonly read: () => Promise<TaskInputs> },
  ): Promise<TaskInputs> {
    // Before it is read: what changes meanwhile makes another stamp the next time.
    const stamp = folderStamp(dir, this.#clock.now());
    if (stamp === null) return await read();
    const known = this.#kept.get(key);
    if (known?.stamp === stamp)
      try {
        const inputs = await known.inputs;
        this.#keep(key, known);
        return inputs;
      } catch {
        // Whoever began to read it gave up, or it is broken: then it is so for this one too.
      }
    const kept = { stamp, inputs: read() };
    this.#keep(key, kept);
    try {
      return await kept.inputs;
    } catch (error) {
      if (this.#kept.get(key) === kept) this.#kept.delete(key);
      throw error;
    }
  }

  #keep(key: string, kept: Kept): void {
    this.#kept.delete(key);
    this.#kept.set(key, kept);
    const [oldest] = this.#kept.keys();
    if (this.#kept.size > mostKept && oldest !== undefined) this.#kept.delete(oldest);
  }
}
