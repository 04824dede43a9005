import { Bash } from 'just-bash';
import { messageOf, RolloutError } from '../../../src/core/errors.ts';
import { LinkedAbort } from '../../../src/core/linked-abort.ts';
import {
  maxCapturedBytes,
  type ExecRequest,
  type ExecResult,
} from '../../../src/environments/environment.ts';
import { fakeCommands, type ShellWorld } from './fake-commands.ts';
import { filesOf } from './user-files.ts';

export interface ShellCall {
  readonly request: ExecRequest;
  readonly cwd: string;
  readonly env: Readonly<Record<string, string>>;
}

/** Nothing of these protects anybody here; they would only make large tests fail. */
const wide = 10 ** 9;
const executionLimits = {
  maxOutputSize: wide,
  maxStringLength: wide,
  maxInputBytes: wide,
  maxFileSystemBytes: wide,
  maxLiveBytes: wide,
  maxWorkUnits: wide,
  maxLoopIterations: wide,
  maxCommandCount: wide,
  maxExecutionTimeMs: 3_600_000,
};

/**
 * Runs one command line as the process of `world`. Ends when the command does, its process is killed (exit code 137), the
 * timeout passes or `signal` fires; in the last cases the process and its children are ended.
 */
export async function runShell(
  world: ShellWorld,
  call: ShellCall,
  signal: AbortSignal,
): Promise<ExecResult> {
  const { request } = call;
  using limit = new LinkedAbort([signal], {
    ms: request.timeoutMs ?? Infinity,
    reason: () => execTimeout(request),
  });
  using stop = new LinkedAbort([limit.signal, world.process.killed]);
  const shell = new Bash({
    cwd: call.cwd,
    env: { HOME: world.user.home, PATH: '/usr/local/bin:/usr/bin:/bin', ...call.env },
    fs: filesOf(world.files, world.user),
    customCommands: fakeCommands(world),
    defenseInDepth: false, // it patches globals of the whole process while a command runs
    executionLimits,
  });
  const stopped = Promise.withResolvers<null>();
  const onStop = (): void => stopped.resolve(null);
  stop.signal.addEventListener('abort', onStop, { once: true });
  try {
    const running = shell
      .exec(request.command, {
        rawScript: true,
        stdin: Buffer.from(request.stdin ?? []).toString('latin1'),
        stdinKind: 'bytes',
        signal: stop.signal,
      })
      .catch(refusedByFiles);
    const result = await Promise.race([running, stopped.promise]);
    limit.signal.throwIfAborted();
    if (result === null || world.process.killed.aborted)
      return { exitCode: 137, stdout: '', stderr: '', isTruncated: false };
    return captured(result, request);
  } finally {
    stop.signal.removeEventListener('abort', onStop);
    world.processes.end(world.process);
  }
}

/** What a shell prints when its files refuse a redirection; just-bash lets the error out instead. */
function refusedByFiles(error: unknown): Pick<ExecResult, 'exitCode' | 'stdout' | 'stderr'> {
  const { code } = error as NodeJS.ErrnoException;
  if (code !== 'EACCES' && code !== 'ENOSPC' && code !== 'EROFS') throw error;
  return { exitCode: 1, stdout: '', stderr: `bash: ${messageOf(error)}\n` };
}

function captured(
  result: { readonly exitCode: number; readonly stdout: string; readonly stderr: string },
  request: ExecRequest,
): ExecResult {
  if (result.stdout !== '') request.onOutput?.('stdout', result.stdout);
  if (result.stderr !== '') request.onOutput?.('stderr', result.stderr);
  const stdout = result.stdout.slice(0, maxCapturedBytes);
  const stderr = result.stderr.slice(0, maxCapturedBytes);
  const isTruncated = stdout !== result.stdout || stderr !== result.stderr;
  return { exitCode: result.exitCode, stdout, stderr, isTruncated };
}

function execTimeout({ timeoutMs }: ExecRequest): RolloutError {
  const message = `a command ran longer than ${timeoutMs ?? 0} ms`;
  return new RolloutError('EXEC_TIMEOUT', message, { phase: 'environment' });
}
