/** Lines at the end of a terminal's output that are drawn again and again; what is to stay is written above them. */
import { setInterval, clearInterval } from 'node:timers';
import { plainText } from './plain-text.ts';
import type { Terminal } from './terminal.ts';

const frames = ['⠋', '⠙', '⠹', '⠸', '⠼', '⠴', '⠦', '⠧', '⠇', '⠏'];
const frameMs = 120;
const barWidth = 24;

export class RedrawnLines {
  readonly #terminal: Terminal;
  readonly #lines: (spinner: string) => readonly string[];
  readonly #timer: NodeJS.Timeout;
  #drawnLines = 0;
  #frame = 0;
  #isAside = false;
  #isClosed = false;

  /** `lines`: what is to be seen now. */
  constructor(terminal: Terminal, lines: (spinner: string) => readonly string[]) {
    this.#terminal = terminal;
    this.#lines = lines;
    this.#timer = setInterval(() => this.#draw(), frameMs);
    this.#timer.unref();
  }

  /** A line that stays. */
  note(text: string): void {
    this.#terminal.err(`${this.#erasure()}${text}\n`);
    this.#drawnLines = 0;
    if (!this.#isClosed) this.#draw();
  }

  /** Leaves the terminal to somebody else, such as a question, until the work is over. */
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

  /** Removes what is drawn. Idempotent. */
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
    const lines = this.#lines(frames[this.#frame] ?? '');
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
}

/** `share`: from 0 to 1. */
export function progressBar(share: number): string {
  const filled = Math.round(share * barWidth);
  return '█'.repeat(filled) + '░'.repeat(barWidth - filled);
}

/** How long it goes on at the pace so far; null = nothing says. */
export function leftMs(
  elapsedMs: number,
  {
    done,
    total,
    doneBefore,
  }: { readonly done: number; readonly total: number; readonly doneBefore: number },
): number | null {
  const doneNow = done - doneBefore;
  return doneNow <= 0 || done >= total ? null : (elapsedMs / doneNow) * (total - done);
}

/** To the width of the terminal. */
function cut(text: string, width: number): string {
  const plain = plainText(text);
  return plain.length > width ? `${plain.slice(0, width - 1)}…` : plain;
}
