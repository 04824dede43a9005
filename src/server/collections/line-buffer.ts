/** Lines that a trainer has not acknowledged, each under a cursor of its own: they can be read any number of times, in order, by whoever comes back. */

export interface BufferedLine {
  readonly cursor: number;
  /** JSON with its line end. */
  readonly text: string;
  readonly isGroup: boolean;
}

export class LineBuffer {
  #lines: BufferedLine[] = [];
  readonly #listeners = new Set<() => void>();
  #newest = 0;
  #acknowledged = 0;

  /** Cursor of the newest line; 0 = there was none. */
  get newest(): number {
    return this.#newest;
  }

  get acknowledged(): number {
    return this.#acknowledged;
  }

  get unacknowledgedGroups(): number {
    return this.#lines.filter(({ isGroup }) => isGroup).length;
  }

  /** Answers its cursor. */
  add(line: { readonly type: string }): number {
    this.#newest += 1;
    const cursor = this.#newest;
    const text = `${JSON.stringify({ cursor, ...line })}\n`;
    this.#lines.push({ cursor, text, isGroup: line.type === 'group' });
    this.#tell();
    return cursor;
  }

  /** Forgets everything up to `through`, which is no newer than the newest line. */
  acknowledge(through: number): void {
    if (through <= this.#acknowledged) return;
    this.#acknowledged = through;
    this.#lines = this.#lines.filter(({ cursor }) => cursor > through);
    this.#tell();
  }

  /** The first line behind `cursor`; null = there is none yet. */
  next(cursor: number): BufferedLine | null {
    return this.#lines.find((line) => line.cursor > cursor) ?? null;
  }

  /** Called when a line came or lines were acknowledged. Answers how to stop that. */
  onChange(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }

  #tell(): void {
    for (const listener of [...this.#listeners]) listener();
  }
}
