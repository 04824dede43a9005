/**
 * How much of all forests of a process is in memory. Beyond the bound the forest that was used the longest time ago goes to disk as a whole: one append to its own
 * file. Reading back makes nothing resident again, so that looking at old branches cannot push out those that grow.
 *
 * Files are read and written synchronously: each takes one write of what one session has new, far below what the event loop is blocked by anything else.
 */
import { randomUUID } from 'node:crypto';
import { closeSync, mkdirSync, openSync, readSync, rmSync, writeSync } from 'node:fs';
import path from 'node:path';
import { attribute } from '../core/errors.ts';

/** A forest as the budget sees it. */
export interface Spillable {
  readonly residentBytes: number;
  /** Afterwards nothing is resident. */
  spill(): void;
}

export interface TokenBudgetOptions {
  readonly maxBytes: number;
  /** Absolute; made when something is first spilled. */
  readonly dir: string;
}

export class TokenBudget {
  readonly #options: TokenBudgetOptions;
  /** The one that was used the longest time ago first, with the bytes that are counted for it. */
  readonly #forests = new Map<Spillable, number>();
  #residentBytes = 0;

  constructor(options: TokenBudgetOptions) {
    this.#options = options;
  }

  get residentBytes(): number {
    return this.#residentBytes;
  }

  /** A forest has changed. */
  used(forest: Spillable): void {
    this.left(forest);
    this.#count(forest);
    for (const [oldest] of this.#forests) {
      if (this.#residentBytes <= this.#options.maxBytes) return;
      oldest.spill();
      this.left(oldest);
    }
  }

  left(forest: Spillable): void {
    this.#residentBytes -= this.#forests.get(forest) ?? 0;
    this.#forests.delete(forest);
  }

  newFile(): SpillFile {
    return new SpillFile(path.join(this.#options.dir, `${randomUUID()}.tokens`));
  }

  #count(forest: Spillable): void {
    this.#forests.set(forest, forest.residentBytes);
    this.#residentBytes += forest.residentBytes;
  }
}

/** No file stays open: there are as many as sessions. */
export class SpillFile {
  readonly #path: string;
  #length = 0;

  constructor(file: string) {
    this.#path = file;
  }

  /** Where the bytes begin. SESSION_SPILL_FAILED where the disk refuses. */
  append(pieces: readonly Buffer[]): number {
    const at = this.#length;
    this.#attributed('writing tokens of a session', () => {
      if (at === 0) mkdirSync(path.dirname(this.#path), { recursive: true, mode: 0o700 });
      const file = openSync(this.#path, at === 0 ? 'w' : 'r+', 0o600);
      try {
        const bytes = Buffer.concat(pieces);
        for (let done = 0; done < bytes.length;)
          done += writeSync(file, bytes, done, bytes.length - done, at + done);
        this.#length += bytes.length;
      } finally {
        closeSync(file);
      }
    });
    return at;
  }

  /** SESSION_SPILL_FAILED where there are fewer bytes. */
  read(offset: number, length: number): Buffer {
    return this.#attributed('reading tokens of a session', () => {
      const bytes = Buffer.from(new ArrayBuffer(length));
      const file = openSync(this.#path, 'r');
      try {
        for (let done = 0; done < length;) {
          const count = readSync(file, bytes, done, length - done, offset + done);
          if (count === 0) throw new Error('the file is shorter than what was written');
          done += count;
        }
      } finally {
        closeSync(file);
      }
      return bytes;
    });
  }

  remove(): void {
    rmSync(this.#path, { force: true });
  }

  #attributed<T>(what: string, work: () => T): T {
    try {
      return work();
    } catch (error) {
      throw attribute(error, 'SESSION_SPILL_FAILED', 'model-call', what);
    }
  }
}
