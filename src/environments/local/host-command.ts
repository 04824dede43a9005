import { spawn, type SpawnOptions } from 'node:child_process';
import { accessSync, constants, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import type { Readable } from 'node:stream';
import type { LoopTurns, TurnLane } from '../../core/loop-turns.ts';

/** A program of the host, run to its end. Values that are secret go into `environment` or `input`, never into `args`. */
export interface HostCommand {
  readonly file: string;
  readonly args: readonly string[];
  readonly cwd?: string;
  /** Replaces the whole process environment; absent = this process's. */
  readonly environment?: NodeJS.ProcessEnv;
  /** Bytes or a stream for standard input; absent = empty. */
  readonly input?: Uint8Array | Readable;
  /** Where many are started at once: one per turn of the event loop. */
  readonly turns?: LoopTurns;
  /** Default: `start`. */
  readonly lane?: TurnLane;
  /** Receives each line of both streams; of one beyond 64 KiB its end. */
  readonly onLine?: (line: string) => void;
}

export interface HostCommandResult {
  /** 128 + signal number is not imitated: null when a signal ended it. */
  readonly exitCode: number | null;
  readonly stdout: string;
  /** The last 64 KiB. */
  readonly stderr: string;
}

const tailBytes = 64 * 1024;
const stdoutLimit = 16 * 1024 * 1024;
const longestLine = 64 * 1024;
/** For the pipes to close by themselves once the group is dead. */
const pipeGraceMs = 1_000;

/**
 * Runs the program; a non-zero exit is a result. When `signal` fires its process group is killed and the call rejects with the
 * reason, after the program has ended. Rejects with the system's error when it cannot be started.
 */
export async function runHostCommand(
  command: HostCommand,
  signal: AbortSignal,
): Promise<HostCommandResult> {
  await command.turns?.next(command.lane);
  signal.throwIfAborted();
  const options: SpawnOptions = {
    stdio: [command.input === undefined ? 'ignore' : 'pipe', 'pipe', 'pipe'],
    detached: true, // its own process group, so that the whole of it can be killed
    ...(command.cwd === undefined ? {} : { cwd: command.cwd }),
    env: command.environment ?? { ...process.env, PATH: hostSearchPath() },
  };
  const child = spawn(command.file, command.args, options);
  if (command.lane === 'end') hasten(child.pid);
  let letGo: NodeJS.Timeout | undefined;
  const kill = (): void => {
    if (child.pid !== undefined) killGroup(child.pid);
    letGo = setTimeout(() => {
      child.stdout?.destroy(); // someone outside the group may hold the pipes for ever
      child.stderr?.destroy();
    }, pipeGraceMs);
  };
  signal.addEventListener('abort', kill, { once: true });
  let stdout = '';
  let stderr = '';
  const lines = [lineSplitter(command.onLine), lineSplitter(command.onLine)];
  child.stdout?.setEncoding('utf8').on('data', (text: string) => {
    if (stdout.length < stdoutLimit) stdout += text;
    lines[0]?.(text);
  });
  child.stderr?.setEncoding('utf8').on('data', (text: string) => {
    stderr = (stderr + text).slice(-tailBytes);
    lines[1]?.(text);
  });
  feed(command.input, child.stdin);
  try {
    const exitCode = await new Promise<number | null>((resolve, reject) => {
      child.once('error', reject);
      child.once('close', (code) => resolve(code));
    });
    signal.throwIfAborted();
    return { exitCode, stdout, stderr };
  } finally {
    signal.removeEventListener('abort', kill);
    clearTimeout(letGo);
  }
}

/** Being detached, it has a share of the processor like any of the programs of sandboxes; what ends something gets as much as we have. */
function hasten(pid: number | undefined): void {
  try {
    const own = / nice (-?\d+)\s*$/.exec(readFileSync('/proc/self/autogroup', 'utf8'))?.[1];
    if (own !== undefined && pid !== undefined) writeFileSync(`/proc/${pid}/autogroup`, own);
  } catch {
    // the kernel has no such shares, it has ended, or we may not
  }
}

function feed(input: Uint8Array | Readable | undefined, stdin: NodeJS.WritableStream | null): void {
  if (stdin === null || input === undefined) return;
  stdin.on('error', () => undefined); // a program that stops reading says so by its exit code
  if (input instanceof Uint8Array) stdin.end(input);
  else {
    input.on('error', () => undefined); // whoever fills it hears of that
    input.once('close', () => stdin.end()); // a stream that broke off ends the input too
    input.pipe(stdin);
  }
}

function lineSplitter(onLine: ((line: string) => void) | undefined): (text: string) => void {
  let rest = '';
  return (text) => {
    if (onLine === undefined) return;
    const parts = (rest + text).split('\n');
    rest = (parts.pop() ?? '').slice(-longestLine);
    for (const part of parts) onLine(part);
  };
}

/** SIGKILLs a process group; one that has already ended is fine. */
export function killGroup(pid: number): void {
  try {
    process.kill(-pid, 'SIGKILL');
  } catch {
    try {
      process.kill(pid, 'SIGKILL');
    } catch {
      // it has ended
    }
  }
}

const systemFolders = [
  '/usr/local/sbin',
  '/usr/local/bin',
  '/usr/sbin',
  '/usr/bin',
  '/sbin',
  '/bin',
];

/** PATH for programs of the host that we start: the caller's, and the system's folders, which a user's often lacks. */
export function hostSearchPath(): string {
  const own = process.env['PATH'];
  return [...(own === undefined || own === '' ? [] : [own]), ...systemFolders].join(':');
}

/** Absolute path of a program, on PATH or in the system's folders (which a user's PATH may lack); null when absent. */
export function findProgram(
  name: string,
  searchPath: string | undefined = process.env['PATH'],
): string | null {
  const folders = [...(searchPath ?? '').split(':'), ...systemFolders];
  for (const folder of folders) {
    if (!path.isAbsolute(folder)) continue;
    const file = path.join(folder, name);
    try {
      accessSync(file, constants.X_OK);
      return file;
    } catch {
      continue;
    }
  }
  return null;
}
