import type { Clock } from '../../core/clock.ts';
import type { EvalFolder } from './eval-folder.ts';
import type { EvalItem } from './eval-items.ts';

/** `progress.json`: how far it is, for whoever looks from outside. Written again and again, one write at a time, the last word at the end. */
export class EvalProgress {
  readonly #folder: EvalFolder;
  readonly #items: readonly EvalItem[];
  readonly #clock: Clock;
  #writing: Promise<void> | null = null;
  #isStale = false;

  constructor(
    folder: EvalFolder,
    parts: { readonly items: readonly EvalItem[]; readonly clock: Clock },
  ) {
    this.#folder = folder;
    this.#items = parts.items;
    this.#clock = parts.clock;
  }

  show(): void {
    this.#isStale = true;
    this.#writing ??= this.#write();
  }

  async close(): Promise<void> {
    this.show();
    await this.#writing;
  }

  /** What cannot be written is written the next time. */
  async #write(): Promise<void> {
    await Promise.resolve();
    while (this.#isStale) {
      this.#isStale = false;
      await this.#folder.writeJson('progress.json', this.#document()).catch(() => undefined);
    }
    this.#writing = null;
  }

  #document(): unknown {
    const count = (of: (item: EvalItem) => boolean): number => this.#items.filter(of).length;
    return {
      ...{ schema_version: 1, updated_at: this.#clock.now().toISOString() },
      total: this.#items.length,
      pending: count(({ state }) => state === 'pending'),
      running: count(({ state }) => state === 'running'),
      success: count(({ ended }) => ended?.status === 'success'),
      failed: count(({ ended }) => ended?.status === 'failed'),
      skipped: count(({ ended }) => ended?.status === 'skipped'),
    };
  }
}
