/** What is seen of a running evaluation: one redrawn line on a terminal, else a line per run. */
import type { EvalItem } from '../app/run-eval.ts';
import { itemText } from './eval-text.ts';
import { leftMs, progressBar, RedrawnLines } from './redrawn-lines.ts';
import { formatDuration } from './table.ts';
import type { Terminal } from './terminal.ts';

export interface EvalDisplayOptions {
  /** A line that is redrawn. */
  readonly isDrawn: boolean;
  /** A line for every run that has ended. */
  readonly listsRuns: boolean;
}

export class EvalDisplay {
  readonly #terminal: Terminal;
  readonly #options: EvalDisplayOptions;
  #items: readonly EvalItem[] = [];
  #startedMs = 0;
  #endedBefore = 0;
  #ended = 0;
  #lines: RedrawnLines | null = null;

  constructor(terminal: Terminal, options: EvalDisplayOptions) {
    this.#terminal = terminal;
    this.#options = options;
  }

  /** Nothing is drawn before: somebody may be asked something. The items are looked at again and again. */
  begin(items: readonly EvalItem[]): void {
    this.#items = items;
    this.#startedMs = performance.now();
    this.#endedBefore = items.filter(({ ended }) => ended !== null).length;
    this.#ended = this.#endedBefore;
    if (this.#options.isDrawn && this.#endedBefore < items.length)
      this.#lines = new RedrawnLines(this.#terminal, (spinner) => [this.#line(spinner)]);
  }

  ended(item: EvalItem): void {
    this.#ended += 1;
    if (this.#options.listsRuns) this.note(itemText(item, this.#ended, this.#items.length));
  }

  /** A line that stays. */
  note(text: string): void {
    if (this.#lines === null) this.#terminal.err(`${text}\n`);
    else this.#lines.note(text);
  }

  /** Removes what is redrawn. Idempotent. */
  close(): void {
    this.#lines?.close();
    this.#lines = null;
  }

  #line(spinner: string): string {
    let [done, running, failed, sum, rewarded] = [0, 0, 0, 0, 0];
    for (const { state, ended } of this.#items) {
      if (state === 'running') running += 1;
      if (ended === null) continue;
      done += 1;
      if (ended.status === 'failed') failed += 1;
      if (ended.reward === null) continue;
      sum += ended.reward;
      rewarded += 1;
    }
    const total = this.#items.length;
    const elapsed = performance.now() - this.#startedMs;
    const left = leftMs(elapsed, { done, total, doneBefore: this.#endedBefore });
    return [
      `${spinner} ${progressBar(done / total)} ${done}/${total}`,
      `${running} running`,
      ...(failed === 0 ? [] : [`${failed} failed`]),
      ...(rewarded === 0 ? [] : [`mean reward ${(sum / rewarded).toFixed(3)}`]),
      formatDuration(elapsed),
      ...(left === null ? [] : [`about ${formatDuration(left)} left`]),
    ].join('  ');
  }
}
