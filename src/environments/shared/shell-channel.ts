/**
 * A control channel over one shell that stays open. Each command runs in a subshell of it, so that a command costs a fork
 * instead of a new exec. Framing: the subshell first prints a random marker with its pid, the shell prints the marker again with
 * the exit status on both streams when the subshell is done. What a command's background children print after that is dropped or
 * lands in the next command's output; commands that must not mix use `Environment.exec`.
 */
import { randomBytes } from 'node:crypto';
import type { Readable, Writable } from 'node:stream';
import { RolloutError } from '../../core/errors.ts';
import { LinkedAbort } from '../../core/linked-abort.ts';
import {
  maxCapturedBytes,
  type ControlChannel,
  type ExecRequest,
  type ExecResult,
} from '../environment.ts';
import { MarkedStream } from './marked-stream.ts';
import { shellQuote } from './shell-quote.ts';

/** A running `bash` or `sh` in the sandbox, without a terminal, that reads commands from `stdin`. */
export interface RunningShell {
  readonly stdin: Writable;
  readonly stdout: Readable;
  readonly stderr: Readable;
  /** Resolves when the shell has ended, for whatever reason. Never rejects. */
  readonly ended: Promise<void>;
  /** SIGKILLs the process with this pid (as seen inside the sandbox) and its descendants; see `kill-tree.ts`. */
  readonly killTree: (pid: number) => Promise<void>;
  /** Ends the shell itself and frees its streams. Idempotent. */
  readonly kill: () => Promise<void>;
}

type ControlRequest = Pick<ExecRequest, 'command' | 'cwd' | 'env' | 'timeoutMs'>;

const variableName = /^[A-Za-z_][A-Za-z0-9_]*$/;

/** How long a killed command may take to report its end before the whole shell is given up. */
const killGraceMs = 5_000;

export class ShellChannel implements ControlChannel {
  readonly #shell: RunningShell;
  readonly #defaultCwd: string | null;
  #tail: Promise<unknown> = Promise.resolve();
  #isEnded = false;
  #closing: Promise<void> | null = null;

  constructor(shell: RunningShell, options: { readonly defaultCwd: string | null }) {
    this.#shell = shell;
    this.#defaultCwd = options.defaultCwd;
    shell.stdin.on('error', () => undefined); // a dead shell is reported through `ended`
    void shell.ended.then(() => {
      this.#isEnded = true;
    });
  }

  exec(request: ControlRequest, signal: AbortSignal): Promise<ExecResult> {
    const turn = this.#tail.then(async () => this.#run(request, signal));
    this.#tail = turn.catch(() => undefined);
    return turn;
  }

  close(): Promise<void> {
    this.#closing ??= (async () => {
      this.#shell.stdin.end();
      await this.#shell.kill();
      await this.#shell.ended;
    })();
    return this.#closing;
  }

  async #run(request: ControlRequest, signal: AbortSignal): Promise<ExecResult> {
    signal.throwIfAborted();
    if (this.#isEnded || this.#closing !== null) throw lost();
    const marker = randomBytes(16).toString('hex');
    const script = scriptOf(request, { marker, cwd: request.cwd ?? this.#defaultCwd });
    const timeoutMs = request.timeoutMs ?? null;
    using limit = new LinkedAbort(
      [signal],
      timeoutMs === null ? undefined : { ms: timeoutMs, reason: () => timedOut(timeoutMs) },
    );
    const running = this.#listen(marker);
    try {
      this.#shell.stdin.write(script);
      return await this.#settle(running, limit.signal);
    } finally {
      running.detach();
    }
  }

  async #settle(running: Running, signal: AbortSignal): Promise<ExecResult> {
    const aborted = Promise.withResolvers<'aborted'>();
    const onAbort = (): void => aborted.resolve('aborted');
    signal.addEventListener('abort', onAbort, { once: true });
    if (signal.aborted) onAbort();
    try {
      const ended = this.#shell.ended.then(() => 'ended' as const);
      const first = await Promise.race([running.result, ended, aborted.promise]);
      if (first === 'ended') throw lost();
      if (first !== 'aborted') return first;
      await this.#killCommand(running);
      throw signal.reason;
    } finally {
      signal.removeEventListener('abort', onAbort);
    }
  }

  /** Kills the command and waits for the shell's end marker; a shell that does not come back is killed too. */
  async #killCommand(running: Running): Promise<void> {
    using grace = new LinkedAbort([], { ms: killGraceMs, reason: () => 'grace over' });
    const over = new Promise<'over'>((resolve) => {
      grace.signal.addEventListener('abort', () => resolve('over'), { once: true });
    });
    const kill = async (): Promise<'done'> => {
      const pid = await Promise.race([running.pid, this.#shell.ended.then(() => null)]);
      if (pid !== null) await this.#shell.killTree(pid);
      await Promise.race([running.result, this.#shell.ended]);
      return 'done';
    };
    const outcome = await Promise.race([kill().catch(() => 'over' as const), over]);
    if (outcome === 'over') await this.#shell.kill();
  }

  #listen(marker: string): Running {
    const pid = Promise.withResolvers<number>();
    const result = Promise.withResolvers<ExecResult>();
    let exitCode: number | null = null;
    let isStderrDone = false;
    const finish = (): void => {
      if (exitCode === null || !isStderrDone) return;
      result.resolve({
        exitCode,
        stdout: stdout.text(),
        stderr: stderr.text(),
        isTruncated: stdout.isTruncated || stderr.isTruncated,
      });
    };
    const stdout = new MarkedStream({
      marker,
      limit: maxCapturedBytes,
      onText: () => undefined,
      onMarker: (line) => {
        const [word, value] = line.split(' ');
        if (word === 'pid') pid.resolve(Number(value));
        else exitCode = Number(value);
        finish();
      },
    });
    const stderr = new MarkedStream({
      marker,
      limit: maxCapturedBytes,
      onText: () => undefined,
      onMarker: () => {
        isStderrDone = true;
        finish();
      },
    });
    const onStdout = (chunk: Buffer): void => stdout.write(chunk);
    const onStderr = (chunk: Buffer): void => stderr.write(chunk);
    this.#shell.stdout.on('data', onStdout);
    this.#shell.stderr.on('data', onStderr);
    return {
      pid: pid.promise,
      result: result.promise,
      detach: () => {
        this.#shell.stdout.off('data', onStdout);
        this.#shell.stderr.off('data', onStderr);
      },
    };
  }
}

interface Running {
  readonly pid: Promise<number>;
  readonly result: Promise<ExecResult>;
  readonly detach: () => void;
}

function scriptOf(
  request: ControlRequest,
  framing: { readonly marker: string; readonly cwd: string | null },
): string {
  if (request.command.includes('\0'))
    throw new RolloutError('EXEC_FAILED', 'a command holds a NUL byte', {
      phase: 'environment',
      retryable: false,
      remedy: 'Upload binary content as a file.',
    });
  const exports = Object.entries(request.env ?? {}).map(([name, value]) => {
    if (!variableName.test(name))
      throw new RolloutError('EXEC_FAILED', `"${name}" cannot name a variable in a shell`, {
        phase: 'environment',
        retryable: false,
        field: `env.${name}`,
        remedy: 'Use letters, digits and underscores.',
      });
    return `export ${name}=${shellQuote(value)}; `;
  });
  const enter = framing.cwd === null ? '' : `cd ${shellQuote(framing.cwd)} || exit 126; `;
  // /proc/self/stat is opened by the subshell itself, so its first field is the subshell's pid, without another fork.
  return [
    `( read -r slipway_pid slipway_rest </proc/self/stat; printf '%s pid %s\\n' ${framing.marker} "$slipway_pid"; `,
    `unset slipway_pid slipway_rest; ${enter}${exports.join('')}eval ${shellQuote(request.command)} ) </dev/null; `,
    `printf '%s exit %s\\n' ${framing.marker} $?; printf '%s\\n' ${framing.marker} >&2\n`,
  ].join('');
}

function lost(): RolloutError {
  return new RolloutError('ENVIRONMENT_LOST', 'the control shell of the sandbox has ended', {
    phase: 'environment',
    remedy: 'Open a new control channel; when that fails too, the sandbox is gone.',
  });
}

function timedOut(ms: number): RolloutError {
  return new RolloutError('EXEC_TIMEOUT', `the command ran longer than ${ms} ms`, {
    phase: 'environment',
  });
}
