/**
 * The folders that rollouts leave, one per rollout: one that retention has forgotten is removed, unless an execution still has it; then its end removes
 * it. An id that is forgotten may come again: its new execution waits until the old folder is gone.
 */
import { rm } from 'node:fs/promises';
import path from 'node:path';

/** A folder in use. */
export interface UsedFolder {
  /** Resolves when nobody removes the folder any more. Never rejects. */
  readonly isFree: Promise<void>;
  /** The execution has no more business with it. Idempotent. */
  leave(): Promise<void>;
}

export class RolloutFolders {
  readonly #dir: string;
  readonly #nameOf: (rolloutId: string) => string;
  /** Executions that are not released, by folder. */
  readonly #used = new Map<string, number>();
  readonly #forgotten = new Set<string>();
  readonly #removing = new Map<string, Promise<void>>();

  /** `dir`: absolute. */
  constructor(dir: string, nameOf: (rolloutId: string) => string) {
    this.#dir = dir;
    this.#nameOf = nameOf;
  }

  use(rolloutId: string): UsedFolder {
    const name = this.#nameOf(rolloutId);
    this.#used.set(name, (this.#used.get(name) ?? 0) + 1);
    this.#forgotten.delete(name);
    let isUsed = true;
    return {
      isFree: this.#removing.get(name)?.catch(() => undefined) ?? Promise.resolve(),
      leave: async () => {
        if (!isUsed) return;
        isUsed = false;
        const left = (this.#used.get(name) ?? 1) - 1;
        if (left > 0) this.#used.set(name, left);
        else this.#used.delete(name);
        if (left === 0 && this.#forgotten.delete(name)) await this.#remove(name);
      },
    };
  }

  /** Rejects when a folder cannot be removed, after all were tried. */
  async forget(rolloutIds: readonly string[]): Promise<void> {
    const errors: unknown[] = [];
    for (const id of rolloutIds) {
      const name = this.#nameOf(id);
      if (this.#used.has(name)) this.#forgotten.add(name);
      else await this.#remove(name).catch((error: unknown) => errors.push(error));
    }
    if (errors.length > 0) throw new AggregateError(errors, 'some folders could not be removed');
  }

  async #remove(name: string): Promise<void> {
    const removing = rm(path.join(this.#dir, name), { recursive: true, force: true });
    this.#removing.set(name, removing);
    try {
      await removing;
    } finally {
      if (this.#removing.get(name) === removing) this.#removing.delete(name);
    }
  }
}
