/**
 * How full the disk under the data folder is. Below the floor no new rollout is accepted, so that what was accepted has room for its results; it goes on
 * as soon as there is space again.
 */
import { statfs } from 'node:fs/promises';
import type { Clock } from '../../core/clock.ts';
import type { DiskFacts } from '../../scheduler/diagnosis.ts';

const everyMs = 1_000;

export class DiskWatch {
  readonly #dir: string;
  readonly #floorBytes: number;
  #hasRoom = true;

  constructor(dir: string, floorBytes: number) {
    this.#dir = dir;
    this.#floorBytes = floorBytes;
  }

  /** As it was at the latest look. */
  get hasRoom(): boolean {
    return this.#hasRoom;
  }

  async look(): Promise<DiskFacts> {
    const { bavail, blocks, bsize } = await statfs(this.#dir);
    const freeBytes = bavail * bsize;
    this.#hasRoom = freeBytes >= this.#floorBytes;
    return { freeBytes, totalBytes: blocks * bsize, floorBytes: this.#floorBytes };
  }

  /** Looks now and then until `signal` fires; a look that fails changes nothing. Never rejects. */
  async watch({
    clock,
    signal,
  }: {
    readonly clock: Clock;
    readonly signal: AbortSignal;
  }): Promise<void> {
    while (!signal.aborted) {
      await this.look().catch(() => null);
      await clock.sleep(everyMs, signal).catch(() => undefined);
    }
  }
}
