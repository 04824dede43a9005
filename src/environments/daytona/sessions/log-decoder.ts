/** How the daemon says in its log which stream the following bytes are of: three times the number. */
const streamNumbers = { stdout: 1, stderr: 2 } as const;

type Stream = keyof typeof streamNumbers;

/** A session command's log → what `session-script.ts` encoded: the program's own bytes, and its end. */
export class LogDecoder {
  readonly #onBytes: (stream: Stream, bytes: Buffer) => void;
  readonly #lines: Record<Stream, string> = { stdout: '', stderr: '' };
  readonly #marks: Record<Stream, EndMark>;
  /** Pid of the session's shell, as seen inside; null until it has been told. */
  shell: number | null = null;
  #stream: Stream = 'stdout';
  #exitCode: number | null = null;

  constructor(
    mark: string,
    options: { readonly onBytes: (stream: Stream, bytes: Buffer) => void },
  ) {
    this.#onBytes = options.onBytes;
    this.#marks = { stdout: new EndMark(mark), stderr: new EndMark(mark) };
  }

  /** Exit code once all output before the program's end has come on both streams; null before. */
  get exitCode(): number | null {
    return this.#marks.stderr.rest === null ? null : this.#exitCode;
  }

  write(chunk: Buffer): void {
    let from = 0;
    for (let at = 0; at <= chunk.length; at += 1) {
      const byte = at === chunk.length ? null : chunk[at];
      if (byte !== null && byte !== streamNumbers.stdout && byte !== streamNumbers.stderr) continue;
      if (at > from) this.#take(chunk.toString('latin1', from, at));
      from = at + 1;
      if (byte !== null) this.#stream = byte === streamNumbers.stdout ? 'stdout' : 'stderr';
    }
  }

  #take(text: string): void {
    const stream = this.#stream;
    const lines = (this.#lines[stream] + text).split('\n');
    this.#lines[stream] = lines.pop() ?? '';
    const trimmed = lines.map((line) => line.trim());
    if (this.shell === null) this.#findShell(trimmed);
    const whole = trimmed.filter(isEncoded);
    if (whole.length === 0) return;
    const mark = this.#marks[stream];
    const bytes = mark.before(Buffer.concat(whole.map((line) => Buffer.from(line, 'base64'))));
    if (bytes.length > 0) this.#onBytes(stream, bytes);
    if (stream === 'stdout' && mark.rest !== null) this.#exitCode ??= Number(mark.rest);
  }

  #findShell(lines: readonly string[]): void {
    const told = lines
      .map((line) => /^:shell (\d+)$/.exec(line)?.[1])
      .find((pid) => pid !== undefined);
    if (told !== undefined) this.shell = Number(told);
  }
}

/** Anything else on the streams is the daemon's or its shell's, and is left out. */
function isEncoded(line: string): boolean {
  return line !== '' && line.length % 4 === 0 && /^[A-Za-z0-9+/]+=*$/.test(line);
}

/** Passes bytes on until the mark, of which it holds back what may be its beginning. */
class EndMark {
  readonly #mark: Buffer;
  #held: Buffer = Buffer.alloc(0);
  /** What stands behind the mark on its line; null until it has come. */
  rest: string | null = null;

  constructor(mark: string) {
    this.#mark = Buffer.from(mark);
  }

  /** Bytes that are known to come before the mark. */
  before(chunk: Buffer): Buffer {
    if (this.rest !== null) return Buffer.alloc(0);
    const all = this.#held.length === 0 ? chunk : Buffer.concat([this.#held, chunk]);
    const at = all.indexOf(this.#mark);
    if (at !== -1) {
      const lineEnd = all.indexOf(0x0a, at);
      this.#held = lineEnd === -1 ? all.subarray(at) : Buffer.alloc(0);
      if (lineEnd !== -1)
        this.rest = all.toString('latin1', at + this.#mark.length, lineEnd).trim();
      return all.subarray(0, at);
    }
    const cut = all.length - this.#beginning(all);
    this.#held = all.subarray(cut);
    return all.subarray(0, cut);
  }

  #beginning(all: Buffer): number {
    for (let length = Math.min(all.length, this.#mark.length - 1); length > 0; length -= 1)
      if (all.subarray(all.length - length).equals(this.#mark.subarray(0, length))) return length;
    return 0;
  }
}
