/** Redrawn lines on a terminal: one for the job, one per running trial. */
import { setInterval, clearInterval } from 'node:timers';
import type { JobEvent } from '../app/run-job.ts';
import { plainText } from './plain-text.ts';
import { ProgressState } from './progress-state.ts';
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

const frames = ['⠋', '⠙', '⠹', '⠸', '⠼', '⠴', '⠦', '⠧', '⠇', '⠏'];
const frameMs = 120;
const barWidth = 24;
const mostLines = 12;

export class ProgressDisplay implements Display {
  readonly #terminal: Terminal;
  readonly #state = new ProgressState();
  readonly #isBarOnly: boolean;
  readonly #startedMs = performance.now();
  readonly #timer: NodeJS.Timeout;
  #drawnLines = 0;
  #frame = 0;
  #isAside = false;
  #isClosed = false;

  constructor(terminal: Terminal, options: { readonly isBarOnly: boolean }) {
    this.#terminal = terminal;
    this.#isBarOnly = options.isBarOnly;
    this.#timer = setInterval(() => this.#draw(), frameMs);
    this.#timer.unref();
  }

  accept(event: JobEvent): void {
    this.#state.accept(event, performance.now());
    if (event.type === 'trial:cancelled') this.note(cancellationText(event));
    if (this.#isBarOnly || event.type !== 'trial:settled' || event.summary.failure === null) return;
    this.note(`${event.summary.trialName}: ${verdictText(event.summary)}`);
  }

  note(text: string): void {
    this.#terminal.err(`${this.#erasure()}${text}\n`);
    this.#drawnLines = 0;
    if (!this.#isClosed) this.#draw();
  }

  async standAside<T>(work: () => Promise<T>): Promise<T> {
    this.#terminal.err(this.#erasure());
    this.#drawnLines = 0;
    this.#isAside = true;
    try {
      return await work();
    } finally {
      this.#isAside = false;
    }
  }

  close(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    clearInterval(this.#timer);
    this.#terminal.err(this.#erasure());
    this.#drawnLines = 0;
  }

  #draw(): void {
    if (this.#isAside) return;
    this.#frame = (this.#frame + 1) % frames.length;
    const width = Math.max(this.#terminal.columns - 1, 20);
    const lines = [this.#jobLine(), ...(this.#isBarOnly ? [] : this.#trialLines())];
    const text = lines.map((line) => `${cut(line, width)}\x1b[K\n`).join('');
    this.#terminal.err(`${this.#toFirstLine()}${text}\x1b[J`);
    this.#drawnLines = lines.length;
  }

  #toFirstLine(): string {
    return this.#drawnLines === 0 ? '' : `\x1b[${this.#drawnLines}A\r`;
  }

  /** Back to the first drawn line, and everything below gone. */
  #erasure(): string {
    return this.#drawnLines === 0 ? '' : `${this.#toFirstLine()}\x1b[J`;
  }

  #jobLine(): string {
    const { total, settled, settledBefore, failed, meanReward } = this.#state;
    const spinner = frames[this.#frame] ?? '';
    if (total === 0) return `${spinner} preparing  ${formatDuration(this.#elapsedMs())}`;
    const share = settled / total;
    const filled = Math.round(share * barWidth);
    const bar = '█'.repeat(filled) + '░'.repeat(barWidth - filled);
    const elapsed = this.#elapsedMs();
    const settledNow = settled - settledBefore;
    const left =
      settledNow === 0 || settled >= total ? null : (elapsed / settledNow) * (total - settled);
    return [
      `${spinner} ${bar} ${settled}/${total}`,
      ...(meanReward === null ? [] : [`mean ${meanReward.toFixed(3)}`]),
      ...(failed === 0 ? [] : [`${failed} failed`]),
      formatDuration(elapsed),
      ...(left === null ? [] : [`about ${formatDuration(left)} left`]),
    ].join('  ');
  }

  #elapsedMs(): number {
    return performance.now() - this.#startedMs;
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

/** To the width of the terminal. */
function cut(text: string, width: number): string {
  const plain = plainText(text);
  return plain.length > width ? `${plain.slice(0, width - 1)}…` : plain;
}
