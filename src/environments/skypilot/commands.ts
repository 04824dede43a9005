import { PassThrough } from 'node:stream';
import { RolloutError } from '../../core/errors.ts';
import { LinkedAbort } from '../../core/linked-abort.ts';
import { raceSignal } from '../../core/race-signal.ts';
import {
  maxCapturedBytes,
  type ControlChannel,
  type ExecRequest,
  type ExecResult,
  type ProcessRequest,
} from '../environment.ts';
import { AttachedProcess, startLimit } from '../shared/attached-process.ts';
import { CapturedOutput } from '../shared/captured-output.ts';
import { ShellChannel } from '../shared/shell-channel.ts';
import { lostSandbox, RelayedProgram, type RelayTarget } from './relay/relayed-program.ts';
import { isSkyError, skyFailure } from './sky-error.ts';

/** Runs one command; the contract is that of `Environment.exec`. */
export async function runCommand(
  target: RelayTarget,
  request: ExecRequest & { readonly shell: 'bash' | 'sh' },
  signal: AbortSignal,
): Promise<ExecResult> {
  signal.throwIfAborted();
  const timeoutMs = request.timeoutMs ?? null;
  using limit = new LinkedAbort(
    [signal],
    timeoutMs === null ? undefined : { ms: timeoutMs, reason: () => timedOut(timeoutMs) },
  );
  const { onOutput = (): void => undefined, stdin } = request;
  const stdout = new CapturedOutput(maxCapturedBytes, (text) => onOutput('stdout', text));
  const stderr = new CapturedOutput(maxCapturedBytes, (text) => onOutput('stderr', text));
  try {
    const program = await RelayedProgram.start(
      target,
      {
        ...programOf(request, request.shell),
        hasInput: stdin !== undefined,
        // A program that waits for its input has no news before it.
        until: stdin === undefined ? 'news' : 'begun',
        onOutput: (stream, bytes) => (stream === 'stdout' ? stdout : stderr).write(bytes),
      },
      limit.signal,
    );
    if (stdin !== undefined) program.stdin.end(stdin);
    const exitCode = await endOrKill(program, limit.signal);
    target.ending.throwIfAborted();
    stdout.end();
    stderr.end();
    return {
      exitCode: exitCode ?? 137,
      stdout: stdout.text(),
      stderr: stderr.text(),
      isTruncated: stdout.isTruncated || stderr.isTruncated,
    };
  } catch (error) {
    throw commandFailure(error, { signal: limit.signal, target, what: 'running a command' });
  }
}

/** Opens a shell that takes commands on its input. */
export async function openShell(
  target: RelayTarget,
  options: {
    readonly user: string | number | null;
    readonly cwd: string | null;
    readonly signal: AbortSignal;
  },
): Promise<ControlChannel> {
  const stdout = new PassThrough({ highWaterMark: 1024 * 1024 });
  const stderr = new PassThrough({ highWaterMark: 1024 * 1024 });
  stdout.resume();
  stderr.resume();
  using limit = startLimit(options.signal);
  try {
    const program = await RelayedProgram.start(
      target,
      {
        ...programOf({ command: openShellCommand, user: options.user, cwd: options.cwd }, 'sh'),
        hasInput: true,
        until: 'begun',
        onOutput: (stream, bytes) => (stream === 'stdout' ? stdout : stderr).write(bytes),
      },
      limit.signal,
    );
    const ended = program.ended.then(
      () => undefined,
      () => undefined,
    );
    return new ShellChannel(
      {
        stdin: program.stdin,
        stdout,
        stderr,
        ended,
        killTree: (pid) => program.killTree(pid),
        kill: () => program.kill().catch(() => undefined), // the sandbox may be gone, and the shell with it
      },
      { defaultCwd: null },
    );
  } catch (error) {
    throw commandFailure(error, { signal: limit.signal, target, what: 'opening a shell' });
  }
}

/** Starts a program whose input stays open; the contract is that of `Environment.openProcess`. */
export async function openInteractive(
  target: RelayTarget,
  request: ProcessRequest,
  signal: AbortSignal,
): Promise<AttachedProcess> {
  using limit = startLimit(signal);
  try {
    const program = await RelayedProgram.start(
      target,
      {
        ...programOf(request, 'bash'),
        hasInput: true,
        until: 'begun',
        onOutput: request.onOutput,
      },
      limit.signal,
    );
    return new AttachedProcess(
      {
        stdin: program.stdin,
        ended: program.ended.catch(() => null),
        kill: () => program.kill().catch(() => undefined), // the sandbox may be gone, and the program with it
      },
      signal,
    );
  } catch (error) {
    throw commandFailure(error, { signal: limit.signal, target, what: 'starting a program' });
  }
}

const openShellCommand =
  'if command -v bash >/dev/null 2>&1; then exec bash --noprofile --norc; else exec sh; fi';

function programOf(
  { command, cwd, env, user }: Pick<ExecRequest, 'command' | 'cwd' | 'env' | 'user'>,
  shell: 'bash' | 'sh',
) {
  if (command.includes('\0'))
    throw new RolloutError('EXEC_FAILED', 'a command holds a NUL byte', {
      phase: 'environment',
      retryable: false,
      remedy: 'Upload binary content as a file.',
    });
  const userName = user === null || user === undefined ? null : String(user);
  return { command, cwd: cwd ?? null, env: env ?? {}, user: userName, shell };
}

async function endOrKill(program: RelayedProgram, signal: AbortSignal): Promise<number | null> {
  try {
    return await raceSignal(program.ended, signal);
  } catch (error) {
    if (signal.aborted) await program.kill().catch(() => undefined); // the first cause is reported; what survives is found by killProcesses
    throw error;
  }
}

function commandFailure(
  error: unknown,
  of: { readonly signal: AbortSignal; readonly target: RelayTarget; readonly what: string },
): unknown {
  if (of.signal.aborted) return of.signal.reason;
  if (of.target.ending.aborted) return of.target.ending.reason;
  if (isSkyError(error, 'not-found')) return lostSandbox(error);
  return skyFailure(error, { code: 'EXEC_FAILED', phase: 'environment', what: of.what });
}

function timedOut(ms: number): RolloutError {
  return new RolloutError('EXEC_TIMEOUT', `the command ran longer than ${ms} ms`, {
    phase: 'environment',
  });
}
