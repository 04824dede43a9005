import { LinkedAbort } from '../../core/linked-abort.ts';
import type { ProcessRequest } from '../environment.ts';
import { AttachedProcess, startLimit } from '../shared/attached-process.ts';
import { HeldOutput } from '../shared/held-output.ts';
import { retryLost } from '../shared/lost-process.ts';
import { attachExec, type AttachedExec } from './attached-exec.ts';
import { commandArgv } from './command-wrapper.ts';
import { killTree, neverRan, pidOf, type ExecTarget } from './container-exec.ts';
import { engineFailure } from './engine/engine-error.ts';

const exitCodeMs = 10_000;

/** Starts a program whose input stays open; the contract is that of `Environment.openProcess`. */
export function openInteractive(
  target: ExecTarget,
  request: ProcessRequest,
  signal: AbortSignal,
): Promise<AttachedProcess> {
  return retryLost(() => openOnce(target, request, signal));
}

async function openOnce(
  target: ExecTarget,
  request: ProcessRequest,
  signal: AbortSignal,
): Promise<AttachedProcess> {
  signal.throwIfAborted();
  const output = new HeldOutput(request.onOutput);
  using limit = startLimit(signal);
  try {
    const exec = await attachExec(
      target,
      {
        argv: commandArgv(request.command, 'bash'),
        user: request.user ?? null,
        cwd: request.cwd ?? null,
        env: request.env ?? {},
        wantsStdin: true,
        onOutput: (stream, bytes) => output.write(stream, bytes),
      },
      limit.signal,
    );
    const pid = await pidOf(exec, limit.signal);
    if (pid === null) throw neverRan(output.text());
    output.release();
    return attached(target, { exec, pid }, signal);
  } catch (error) {
    limit.signal.throwIfAborted();
    throw engineFailure(error, {
      code: 'EXEC_FAILED',
      phase: 'environment',
      what: 'starting a program',
      isRunning: true,
    });
  }
}

function attached(
  target: ExecTarget,
  started: { readonly exec: AttachedExec; readonly pid: number },
  signal: AbortSignal,
): AttachedProcess {
  const { exec, pid } = started;
  return new AttachedProcess(
    {
      stdin: exec.socket,
      ended: exec.ended.then(() => exitCodeOf(target, exec)),
      kill: async () => {
        await killTree(target, pid).catch(() => undefined); // the container may be gone, and the program with it
        exec.socket.destroy();
      },
    },
    signal,
  );
}

async function exitCodeOf(target: ExecTarget, exec: AttachedExec): Promise<number | null> {
  if (target.isEnding?.() === true) return null;
  using limit = new LinkedAbort([], { ms: exitCodeMs, reason: () => 'no exit code' });
  try {
    return await exec.exitCode(limit.signal);
  } catch {
    return null; // the container is gone, and what it knew
  }
}
