/**
 * What is really run for a command. The wrapper first writes its own pid, which the command then keeps, as one line on stderr, so that
 * a running command can be killed from another exec; the line is cut off again. It needs only `sh` in the image.
 */
const report = 'echo "slipway-pid $$" >&2; ';

/** Argv for a command: `bash -c` where the image has bash and it is wanted, else `sh -c`. */
export function commandArgv(command: string, shell: 'bash' | 'sh'): readonly string[] {
  const run =
    shell === 'sh'
      ? 'exec sh -c "$1"'
      : 'if command -v bash >/dev/null 2>&1; then exec bash -c "$1"; else exec sh -c "$1"; fi';
  return ['sh', '-c', report + run, 'slipway', command];
}

/** Argv for a shell that reads commands from its standard input. */
export const shellArgv: readonly string[] = [
  'sh',
  '-c',
  `${report}if command -v bash >/dev/null 2>&1; then exec bash --noprofile --norc; else exec sh; fi`,
];

/** Argv for a plain `sh` that reads commands from its standard input: what it runs is fixed by POSIX. */
export const plainShellArgv: readonly string[] = ['sh', '-c', `${report}exec sh`];

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
