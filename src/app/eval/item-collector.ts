/** Fetches what is kept of runs that have ended, a few at once. What cannot be fetched holds up nothing: the run counts, and lacks it. */
import type { Clock } from '../../core/clock.ts';
import { messageOf } from '../../core/errors.ts';
import { Limiter } from '../../core/limiter.ts';
import { LinkedAbort } from '../../core/linked-abort.ts';
import { collectItem, type KeptRollouts } from './collect-item.ts';
import type { EvalEvent } from './eval-events.ts';
import type { EvalFolder } from './eval-folder.ts';
import type { EvalItem } from './eval-items.ts';

export interface CollectorParts {
  readonly client: KeptRollouts;
  readonly folder: EvalFolder;
  readonly clock: Clock;
  /** Makes the event durable, then applies it. */
  readonly record: (event: EvalEvent) => Promise<void>;
  readonly note: (text: string) => void;
}

const collectMs = 60_000;
const collectedAtOnce = 4;

export class ItemCollector {
  readonly #parts: CollectorParts;
  readonly #collections = new Set<Promise<void>>();
  readonly #limiter = new Limiter(collectedAtOnce);
  #lacksArchive = false;

  constructor(parts: CollectorParts) {
    this.#parts = parts;
  }

  /** Begins; nothing happens for one that has it already. */
  collect(item: EvalItem): void {
    const { rolloutId } = item;
    if (rolloutId === null || item.kept !== null) return;
    const collection = this.#collect(item, rolloutId).finally(() =>
      this.#collections.delete(collection),
    );
    this.#collections.add(collection);
  }

  /** Resolves when everything that began has ended. Never rejects. */
  async settled(): Promise<void> {
    await Promise.all(this.#collections);
  }

  async #collect({ rowIndex, runIndex }: EvalItem, rolloutId: string): Promise<void> {
    const { client, folder, clock, record, note } = this.#parts;
    using link = new LinkedAbort([], {
      ms: collectMs,
      reason: () => new Error(`not there within ${collectMs / 1000} s`),
    });
    const { signal } = link;
    try {
      const kept = await this.#limiter.run(signal, () =>
        collectItem({ rowIndex, runIndex, rolloutId }, { client, folder, clock, signal }),
      );
      await record({
        type: 'item:kept',
        ...{ row_index: rowIndex, run_index: runIndex, rollout_id: rolloutId },
        at: clock.now().toISOString(),
        ...kept,
      });
    } catch (error) {
      // A server of others has no archive to ask: that is said once.
      if (!this.#lacksArchive) note(`what the server keeps was not fetched: ${messageOf(error)}`);
      this.#lacksArchive = true;
    }
  }
}
