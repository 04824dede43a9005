import { cutText } from '../../core/cut-text.ts';

const longestLine = 4_000;

/** Makes lines of text that comes in pieces. What is longer than a line of a log is cut. */
export class LineLog {
  readonly #say: (line: string) => void;
  #begun = '';

  constructor(say: (line: string) => void) {
    this.#say = say;
  }

  push(text: string): void {
    const [first = '', ...rest] = text.split('\n');
    const lines = [cutText(this.#begun + first, longestLine), ...rest];
    this.#begun = cutText(lines.pop() ?? '', longestLine);
    for (const line of lines) this.#tell(line);
  }

  /** Nothing comes any more: what was begun is a line too. */
  end(): void {
    this.push('\n');
  }

  #tell(line: string): void {
    if (line.trim() !== '') this.#say(cutText(line, longestLine));
  }
}
