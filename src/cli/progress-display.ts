/** Redrawn lines on a terminal: one for the job, one per running trial. */
import type { JobEvent } from '../app/run-job.ts';
import { ProgressState } from './progress-state.ts';
import { leftMs, progressBar, RedrawnLines } from './redrawn-lines.ts';
import { cancellationText, verdictText } from './verdict-text.ts';
import { formatDuration } from './table.ts';
import type { Terminal } from './terminal.ts';

export interface Display {
  accept(event: JobEvent): void;
  /** A line that stays. */
  note(text: string): void;
  /** Leaves the terminal to somebody else, such as a question, until the work is over. */
  standAside<T>(work: () => Promise<T>): Promise<T>;
  /** Removes what is redrawn. Idempotent. */
  close(): void;
}

const mostLines = 12;

export class ProgressDisplay implements Display {
  readonly #lines: RedrawnLines;
  readonly #state = new ProgressState();
  readonly #isBarOnly: boolean;
  readonly #startedMs = performance.now();

  constructor(terminal: Terminal, options: { readonly isBarOnly: boolean }) {
    this.#isBarOnly = options.isBarOnly;
    this.#lines = new RedrawnLines(terminal, (spinner) => [
      this.#jobLine(spinner),
      ...(this.#isBarOnly ? [] : this.#trialLines()),
    ]);
  }

  accept(event: JobEvent): void {
    this.#state.accept(event, performance.now());
    if (event.type === 'trial:cancelled') this.note(cancellationText(event));
    if (this.#isBarOnly || event.type !== 'trial:settled' || event.summary.failure === null) return;
    this.note(`${event.summary.trialName}: ${verdictText(event.summary)}`);
  }

  note(text: string): void {
    this.#lines.note(text);
  }

  standAside<T>(work: () => Promise<T>): Promise<T> {
    return this.#lines.standAside(work);
  }

  close(): void {
    this.#lines.close();
  }

  #jobLine(spinner: string): string {
    const { total, settled, settledBefore, failed, meanReward } = this.#state;
    const elapsed = performance.now() - this.#startedMs;
    if (total === 0) return `${spinner} preparing  ${formatDuration(elapsed)}`;
    const left = leftMs(elapsed, { done: settled, total, doneBefore: settledBefore });
    return [
      `${spinner} ${progressBar(settled / total)} ${settled}/${total}`,
      ...(meanReward === null ? [] : [`mean ${meanReward.toFixed(3)}`]),
      ...(failed === 0 ? [] : [`${failed} failed`]),
      formatDuration(elapsed),
      ...(left === null ? [] : [`about ${formatDuration(left)} left`]),
    ].join('  ');
  }

  #trialLines(): string[] {
    const now = performance.now();
    const running = this.#state.running;
    const shown = running.slice(0, mostLines).map(({ taskName, stage, since, line }) => {
      const detail = line === null ? '' : `  ${line.trim()}`;
      return `  ${taskName}  ${stage} ${formatDuration(now - since)}${detail}`;
    });
    const more = running.length - shown.length;
    return more > 0 ? [...shown, `  and ${more} more`] : shown;
  }
}
