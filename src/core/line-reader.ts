/** Lines of a byte stream, each at most so long: a program that never ends its line must not fill our memory. */
const newline = 0x0a;

export class LineReader {
  readonly #maxBytes: number;
  readonly #onLine: (line: string) => void;
  readonly #onOverflow: () => void;
  #parts: Buffer[] = [];
  #size = 0;
  #isOver = false;

  /** After `onOverflow`, which is called once, nothing is read any more. */
  constructor(maxBytes: number, onLine: (line: string) => void, onOverflow: () => void) {
    this.#maxBytes = maxBytes;
    this.#onLine = onLine;
    this.#onOverflow = onOverflow;
  }

  push(chunk: Buffer): void {
    let rest = chunk;
    while (!this.#isOver) {
      const at = rest.indexOf(newline);
      const part = at === -1 ? rest : rest.subarray(0, at);
      this.#size += part.length;
      if (this.#size > this.#maxBytes) {
        this.#isOver = true;
        this.#parts = [];
        this.#onOverflow();
        return;
      }
      this.#parts.push(part);
      if (at === -1) return;
      const line = Buffer.concat(this.#parts).toString('utf8');
      this.#parts = [];
      this.#size = 0;
      this.#onLine(line);
      rest = rest.subarray(at + 1);
    }
  }
}
