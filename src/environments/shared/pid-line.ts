/**
 * A shell script of ours first writes its own pid, which the command that it becomes keeps, as one line on stderr: so a running command can be killed
 * from outside. The line is cut off again.
 */
export const reportPid = 'echo "slipway-pid $$" >&2';

/** Cuts the pid line off the beginning of stderr and passes the rest on. */
export class PidLine {
  #pending: Buffer | null = Buffer.alloc(0);
  readonly #onPid: (pid: number) => void;

  constructor(onPid: (pid: number) => void) {
    this.#onPid = onPid;
  }

  /** Returns the bytes that belong to the command. */
  strip(chunk: Buffer): Buffer {
    if (this.#pending === null) return chunk;
    const all = Buffer.concat([this.#pending, chunk]);
    const lineEnd = all.indexOf(0x0a);
    if (lineEnd === -1 && all.length < 64) {
      this.#pending = all;
      return Buffer.alloc(0);
    }
    this.#pending = null;
    const match = /^slipway-pid (\d+)$/.exec(all.toString('latin1', 0, Math.max(lineEnd, 0)));
    if (match === null) return all;
    this.#onPid(Number(match[1]));
    return all.subarray(lineEnd + 1);
  }

  /** What was held back when the stream ended without a whole first line. */
  rest(): Buffer {
    const rest = this.#pending ?? Buffer.alloc(0);
    this.#pending = null;
    return rest;
  }
}
