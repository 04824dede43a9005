/**
 * Runs one command in a sandbox. The exit code comes over a descriptor of its own, from a shell that waits for the command, so that the
 * result is there when the command ends: children that it left in the background may hold its output open for ever.
 */
import { setTimeout as delay } from 'node:timers/promises';
import { RolloutError } from '../../../core/errors.ts';
import { LinkedAbort } from '../../../core/linked-abort.ts';
import { maxCapturedBytes, type ExecRequest, type ExecResult } from '../../environment.ts';
import { killChildrenOf, killProcessTree } from '../processes/kill-tree.ts';
import type { HostScan } from '../processes/host-scan.ts';
import { readProcess } from '../processes/process-table.ts';
import type { SandboxCommand } from '../runtime/runtime.ts';
import { CapturedStream } from './captured-stream.ts';

/** Output that comes this long after the command's end without a pause belongs to it; see `settleOutput`. */
const quietMs = 250;
const settleMs = 2_000;
const killMs = 3_000;
const watchMs = 500;
const killedExitCode = 137;

export interface Shells {
  /** `bash`, or `sh` where the image has no bash. */
  readonly command: string;
  /** The shell that waits for it. */
  readonly waiting: string;
}

/** Runs its arguments and writes their exit code to descriptor 3. */
const waitScript = '"$@" 3>&-; echo "$?" >&3';
/** The same, with pipes for output: what Node gives a child are sockets, which `echo >/dev/stderr` cannot open. */
const pipeScript =
  '{ { "$@" 3>&- 4>&-; echo "$?" >&3; } 2>&1 >&4 | cat >&2 3>&- 4>&-; } 4>&1 | cat 3>&-';

/** Arguments of the process that runs `command` and writes its exit code to descriptor 3; with `saysBegin` a line before it. */
export function commandArguments(
  command: string,
  shells: Shells,
  options: { readonly hasPipes: boolean; readonly saysBegin?: boolean },
): readonly string[] {
  const wait = options.hasPipes ? waitScript : pipeScript;
  const script = options.saysBegin === true ? `echo begun >&3; ${wait}` : wait;
  return [shells.waiting, '-c', script, 'slipway', shells.command, '-c', command];
}

/** Follows a command to its end; see `Environment.exec` for the contract. `isAlive` tells a dead sandbox from a failed command. */
export async function finishCommand(
  running: SandboxCommand,
  request: Pick<ExecRequest, 'timeoutMs' | 'stdin' | 'onOutput'>,
  options: {
    readonly signal: AbortSignal;
    readonly isAlive: () => boolean;
    readonly scan: HostScan;
  },
): Promise<ExecResult> {
  const timeoutMs = request.timeoutMs ?? null;
  using limit = new LinkedAbort(
    [options.signal],
    timeoutMs === null ? undefined : { ms: timeoutMs, reason: () => timedOut(timeoutMs) },
  );
  const { onOutput } = request;
  const capture = (name: 'stdout' | 'stderr'): CapturedStream =>
    new CapturedStream(running[name], {
      limit: maxCapturedBytes,
      onText: onOutput === undefined ? undefined : (text) => onOutput(name, text),
    });
  const stdout = capture('stdout');
  const stderr = capture('stderr');
  running.stdin?.on('error', () => undefined); // a command need not read its input
  running.stdin?.end(request.stdin ?? Buffer.alloc(0));
  const closed = new Promise<void>((resolve) => {
    running.child.once('close', () => resolve());
    running.child.once('error', () => resolve());
  });
  const outcome = await statusOrAbort(running, limit.signal);
  if (outcome === 'aborted') {
    stdout.ignoreRest();
    stderr.ignoreRest();
    await killCommand(running, options.scan);
    throw limit.signal.reason;
  }
  await settleOutput(closed, [stdout, stderr]);
  stdout.ignoreRest();
  stderr.ignoreRest();
  if (outcome === null && (await running.hostPid()) === null)
    throw notStarted(stderr.text(), options.isAlive());
  if (outcome === null && !options.isAlive()) throw lost();
  return {
    exitCode: outcome ?? killedExitCode,
    stdout: stdout.text(),
    stderr: stderr.text(),
    isTruncated: stdout.isTruncated || stderr.isTruncated,
  };
}

/** The exit code; null when the waiting shell was killed before it could say it, or never ran. */
async function statusOrAbort(
  running: SandboxCommand,
  signal: AbortSignal,
): Promise<number | null | 'aborted'> {
  const outcome = Promise.withResolvers<number | null | 'aborted'>();
  const onAbort = (): void => outcome.resolve('aborted');
  signal.addEventListener('abort', onAbort, { once: true });
  if (signal.aborted) onAbort();
  let text = '';
  running.status.on('data', (chunk: Buffer) => {
    text = (text + chunk.toString('latin1')).slice(0, 16);
    if (text.includes('\n')) outcome.resolve(Number.parseInt(text, 10));
  });
  const stopWatching = watchEnd(running, () => outcome.resolve(null));
  try {
    return await outcome.promise;
  } finally {
    stopWatching();
    signal.removeEventListener('abort', onAbort);
  }
}

/** Calls `onEnd` when the waiting shell is gone, be it without having said its status; returns what ends the watching. */
export function watchEnd(running: SandboxCommand, onEnd: () => void): () => void {
  running.status.once('end', onEnd);
  running.status.once('error', onEnd);
  running.status.once('close', onEnd);
  running.child.once('error', onEnd);
  // The program of the host holds the descriptor too: with a background child it would outlive a waiting shell that was killed.
  const watch = setInterval(() => {
    // What is only beginning is no shell that was killed; how it begins takes long where many do.
    if ((running.starter?.() ?? null) !== null) return;
    void running.hostPid().then((pid) => {
      if (pid !== null && isGone(pid)) setTimeout(onEnd, watchMs);
    });
  }, watchMs);
  return () => clearInterval(watch);
}

function isGone(pid: number): boolean {
  return readProcess(pid)?.isEnded ?? true;
}

/**
 * Waits until all output has arrived. Where a background child keeps the streams open, output counts as complete after a quiet
 * moment; the streams are then read on and dropped, so that the child can go on writing.
 */
export async function settleOutput(
  closed: Promise<void>,
  streams: readonly { readonly lastByteAt: number }[],
): Promise<void> {
  const end = performance.now();
  const isClosed = closed.then(() => true);
  for (;;) {
    using pause = new LinkedAbort([]);
    const waited = delay(quietMs / 5, false, { signal: pause.signal }).catch(() => false);
    if (await Promise.race([isClosed, waited])) {
      pause.abort('closed');
      return;
    }
    const now = performance.now();
    const lastByteAt = Math.max(end, ...streams.map((stream) => stream.lastByteAt));
    if (now - lastByteAt > quietMs || now - end > settleMs) return;
  }
}

/** Kills the command with all it started; the program of the host that carries it ends with that. */
export async function killCommand(running: SandboxCommand, scan: HostScan): Promise<void> {
  // Of what is only beginning nobody waits until it is known: the program that begins it gives up without it.
  const starter = running.starter?.() ?? null;
  const limits = { scan, deadlineMs: killMs };
  if (starter !== null) await killChildrenOf(starter, limits);
  const pid = await running.hostPid();
  if (pid !== null) await killProcessTree(pid, limits);
  running.release();
  running.child.unref();
}

function timedOut(ms: number): RolloutError {
  return new RolloutError('EXEC_TIMEOUT', `the command ran longer than ${ms} ms`, {
    phase: 'environment',
  });
}

function lost(): RolloutError {
  return new RolloutError('ENVIRONMENT_LOST', 'the sandbox died while a command ran in it', {
    phase: 'environment',
  });
}

export function notStarted(said: string, isAlive: boolean): RolloutError {
  if (!isAlive)
    return new RolloutError('ENVIRONMENT_LOST', 'the sandbox does not run any more', {
      phase: 'environment',
    });
  const detail = said.trim();
  return new RolloutError(
    'EXEC_FAILED',
    `the command could not be started: ${detail.slice(-300)}`,
    {
      phase: 'environment',
      detail,
      remedy: 'Check that the working folder exists and that the image has a shell.',
    },
  );
}
