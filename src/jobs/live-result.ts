/** Keeps `result.json` of a job current: at most one write at a time, and the last state always gets written. */
import type { Logger } from '../core/logger.ts';
import { messageOf } from '../core/errors.ts';

export class LiveResult {
  readonly #write: () => Promise<void>;
  readonly #logger: Logger;
  #writing: Promise<void> | null = null;
  #isStale = false;

  /** `write` renders and writes the state of the moment. */
  constructor(write: () => Promise<void>, logger: Logger) {
    this.#write = write;
    this.#logger = logger;
  }

  /** Asks for a write; never waits, never throws: a failed one is logged and the next one tries again. */
  update(): void {
    this.#isStale = true;
    this.#writing ??= this.#writeAll();
  }

  /** Resolves when nothing is being written any more. */
  async settled(): Promise<void> {
    await this.#writing;
  }

  async #writeAll(): Promise<void> {
    while (this.#isStale) {
      this.#isStale = false;
      try {
        await this.#write();
      } catch (error) {
        this.#logger.log('warn', `result.json could not be written: ${messageOf(error)}`);
      }
    }
    this.#writing = null;
  }
}
