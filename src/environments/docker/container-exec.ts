import { systemClock } from '../../core/clock.ts';
import { LinkedAbort } from '../../core/linked-abort.ts';
import { RolloutError } from '../../core/errors.ts';
import {
  maxCapturedBytes,
  type ControlChannel,
  type ExecRequest,
  type ExecResult,
} from '../environment.ts';
import { CapturedOutput } from '../shared/captured-output.ts';
import { killTreeScript } from '../shared/kill-tree.ts';
import { isLostBeforeStart, retryLost } from '../shared/lost-process.ts';
import { ShellChannel } from '../shared/shell-channel.ts';
import { attachExec, type AttachedExec } from './attached-exec.ts';
import { commandArgv, shellArgv } from './command-wrapper.ts';
import { containerDetails } from './engine/engine-answers.ts';
import type { EngineClient } from './engine/engine-client.ts';
import { engineFailure } from './engine/engine-error.ts';
import { PassThrough } from 'node:stream';

/** How long killing a command, from the first try to its proven end, may take. */
const killDeadlineMs = 10_000;

/** The engine learns of a container's end a moment after its processes are dead. */
const containerEndMs = 200;

export interface ExecTarget {
  readonly engine: EngineClient;
  readonly containerId: string;
  /** Whether this process is stopping or removing the container: commands that are killed then are lost, not finished. */
  readonly isEnding?: () => boolean;
}

/** Runs one command in a container; the contract is that of `Environment.exec`. */
export function runCommand(
  target: ExecTarget,
  request: ExecRequest & { readonly shell: 'bash' | 'sh' },
  signal: AbortSignal,
): Promise<ExecResult> {
  return retryLost(() => runOnce(target, request, signal));
}

async function runOnce(
  target: ExecTarget,
  request: ExecRequest & { readonly shell: 'bash' | 'sh' },
  signal: AbortSignal,
): Promise<ExecResult> {
  signal.throwIfAborted();
  const timeoutMs = request.timeoutMs ?? null;
  using limit = new LinkedAbort(
    [signal],
    timeoutMs === null ? undefined : { ms: timeoutMs, reason: () => timedOut(timeoutMs) },
  );
  const onOutput = request.onOutput ?? ((): void => undefined);
  const stdout = new CapturedOutput(maxCapturedBytes, (text) => onOutput('stdout', text));
  const stderr = new CapturedOutput(maxCapturedBytes, (text) => onOutput('stderr', text));
  try {
    const exec = await attachExec(
      target,
      {
        argv: commandArgv(request.command, request.shell),
        user: request.user ?? null,
        cwd: request.cwd ?? null,
        env: request.env ?? {},
        wantsStdin: request.stdin !== undefined,
        onOutput: (stream, bytes) => (stream === 'stdout' ? stdout : stderr).write(bytes),
      },
      limit.signal,
    );
    if (request.stdin !== undefined) exec.socket.end(request.stdin);
    await endOrKill(target, exec, limit.signal);
    stdout.end();
    stderr.end();
    const pid = await exec.pid;
    const exitCode = await exec.exitCode(limit.signal);
    await refuseLost(target, exitCode, limit.signal);
    if (pid === null) throw neverRan(stdout.text() + stderr.text());
    return {
      exitCode: exitCode ?? 0,
      stdout: stdout.text(),
      stderr: stderr.text(),
      isTruncated: stdout.isTruncated || stderr.isTruncated,
    };
  } catch (error) {
    limit.signal.throwIfAborted();
    throw engineFailure(error, {
      code: 'EXEC_FAILED',
      phase: 'environment',
      what: 'running a command',
      isRunning: true,
    });
  }
}

/** Opens a shell that takes commands on its input. */
export function openShell(
  target: ExecTarget,
  options: { readonly user: string | number | null; readonly signal: AbortSignal },
): Promise<ControlChannel> {
  return retryLost(() => openOnce(target, options));
}

async function openOnce(
  target: ExecTarget,
  options: { readonly user: string | number | null; readonly signal: AbortSignal },
): Promise<ControlChannel> {
  const stdout = new PassThrough({ highWaterMark: 1024 * 1024 });
  const stderr = new PassThrough({ highWaterMark: 1024 * 1024 });
  stdout.resume();
  stderr.resume();
  let early = ''; // what the engine says when the shell cannot be started
  try {
    const exec = await attachExec(
      target,
      {
        argv: shellArgv,
        user: options.user,
        cwd: null,
        env: {},
        wantsStdin: true,
        onOutput: (stream, bytes) => {
          if (early.length < 2000) early += bytes.toString('utf8');
          (stream === 'stdout' ? stdout : stderr).write(bytes);
        },
      },
      options.signal,
    );
    const pid = await pidOf(exec, options.signal);
    if (pid === null) throw neverRan(early);
    return new ShellChannel(
      {
        stdin: exec.socket,
        stdout,
        stderr,
        ended: exec.ended,
        killTree: async (inside) => killTree(target, inside),
        kill: async () => {
          await killTree(target, pid).catch(() => undefined); // the container may be gone, and the shell with it
          exec.socket.destroy();
        },
      },
      { defaultCwd: null },
    );
  } catch (error) {
    options.signal.throwIfAborted();
    throw engineFailure(error, {
      code: 'EXEC_FAILED',
      phase: 'environment',
      what: 'opening a shell',
      isRunning: true,
    });
  }
}

/** SIGKILLs a process, its group and its descendants, named by the pid inside the container. */
export async function killTree(target: ExecTarget, pid: number): Promise<void> {
  using limit = new LinkedAbort([], { ms: killDeadlineMs, reason: () => timedOut(killDeadlineMs) });
  const script = `${killTreeScript(pid)}\nkill -KILL -${pid} 2>/dev/null; :`;
  const exec = await attachExec(
    target,
    {
      argv: ['sh', '-c', script],
      user: 0,
      cwd: '/',
      env: {},
      wantsStdin: false,
      onOutput: () => undefined,
    },
    limit.signal,
  );
  await withAbort(exec.ended, limit.signal).finally(() => exec.socket.destroy());
}

async function endOrKill(
  target: ExecTarget,
  exec: AttachedExec,
  signal: AbortSignal,
): Promise<void> {
  try {
    await withAbort(exec.ended, signal);
  } catch (error) {
    using grace = new LinkedAbort([], {
      ms: killDeadlineMs,
      reason: () => timedOut(killDeadlineMs),
    });
    await withAbort(
      exec.pid.then(async (pid) => (pid === null ? undefined : killTree(target, pid))),
      grace.signal,
    ).catch(() => undefined); // the first cause is reported; what survives is found by killProcesses
    exec.socket.destroy();
    throw error;
  }
}

export async function pidOf(exec: AttachedExec, signal: AbortSignal): Promise<number | null> {
  try {
    return await withAbort(exec.pid, signal);
  } catch (error) {
    exec.socket.destroy();
    throw error;
  }
}

/** 137 and 143 are also what a command leaves that died with its container: only the container tells. */
async function refuseLost(
  target: ExecTarget,
  exitCode: number | null,
  signal: AbortSignal,
): Promise<void> {
  if (exitCode !== null && exitCode !== 137 && exitCode !== 143) return;
  const path = `/containers/${target.containerId}/json`;
  for (const waitMs of [0, containerEndMs]) {
    await systemClock.sleep(waitMs, signal);
    const answer = await target.engine.json({ method: 'GET', path, signal });
    const isRunning = containerDetails.parse(answer).State.Running;
    if (exitCode === null || !isRunning || target.isEnding?.() === true)
      throw new RolloutError('ENVIRONMENT_LOST', 'the container ended while a command ran in it', {
        phase: 'environment',
      });
  }
}

async function withAbort<T>(work: Promise<T>, signal: AbortSignal): Promise<T> {
  signal.throwIfAborted();
  const stopped = Promise.withResolvers<never>();
  const onAbort = (): void => stopped.reject(signal.reason as Error);
  signal.addEventListener('abort', onAbort, { once: true });
  try {
    return await Promise.race([work, stopped.promise]);
  } finally {
    signal.removeEventListener('abort', onAbort);
  }
}

export function neverRan(output: string): RolloutError {
  const detail = output.trim().slice(0, 2000);
  return new RolloutError('EXEC_FAILED', `the command could not be started: ${detail}`, {
    phase: 'environment',
    retryable: isLostBeforeStart(detail),
    detail,
    remedy: 'Check that the user and the working folder exist and that the image has a shell.',
  });
}

function timedOut(ms: number): RolloutError {
  return new RolloutError('EXEC_TIMEOUT', `the command ran longer than ${ms} ms`, {
    phase: 'environment',
  });
}
