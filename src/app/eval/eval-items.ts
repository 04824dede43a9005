/** What has become of each run of each row, as the events say it. */
import type { EndedEvent, EvalEvent, KeptEvent } from './eval-events.ts';

export interface EvalItem {
  readonly rowIndex: number;
  readonly runIndex: number;
  state: 'pending' | 'running' | 'ended';
  /** Of the latest attempt; null = none yet. */
  rolloutId: string | null;
  ended: EndedEvent | null;
  kept: KeptEvent | null;
  /** Whether it ended in an earlier life of the evaluation. */
  isResumed: boolean;
}

export class EvalItems {
  /** By row, then by run. */
  readonly all: readonly EvalItem[];
  readonly #runs: number;

  constructor(rows: number, runs: number) {
    this.#runs = runs;
    this.all = Array.from({ length: rows * runs }, (_, at) => ({
      rowIndex: Math.floor(at / runs),
      runIndex: at % runs,
      ...{ state: 'pending', rolloutId: null, ended: null, kept: null, isResumed: false },
    }));
  }

  get(rowIndex: number, runIndex: number): EvalItem | null {
    return runIndex < this.#runs ? (this.all[rowIndex * this.#runs + runIndex] ?? null) : null;
  }

  apply(event: EvalEvent): void {
    if (event.type === 'run:started') return;
    const item = this.get(event.row_index, event.run_index);
    if (item === null) return;
    if (event.type === 'item:started') {
      item.state = 'running';
      item.rolloutId = event.rollout_id;
      [item.ended, item.kept] = [null, null];
      return;
    }
    // An attempt that was given up may still be heard of.
    if (event.rollout_id !== item.rolloutId) return;
    if (event.type === 'item:returned') {
      item.state = 'pending';
      [item.ended, item.kept] = [null, null];
    } else if (event.type === 'item:ended') {
      item.state = 'ended';
      item.ended = event;
    } else item.kept = event;
  }
}
