import { spawn, type ChildProcess } from 'node:child_process';
import { LinkedAbort } from '../../core/linked-abort.ts';

export interface ProcessOptions {
  readonly cwd: string;
  readonly variables: Readonly<Record<string, string | undefined>>;
  readonly input: string;
  readonly timeoutMs: number;
  /** What the promise rejects with when `timeoutMs` passes. */
  readonly timeoutReason: () => Error;
  readonly signal: AbortSignal;
}

export interface ProcessResult {
  /** null when a signal ended it. */
  readonly exitCode: number | null;
  readonly stdout: string;
  /** The last 64 KiB. */
  readonly stderr: string;
}

const maxStdoutBytes = 64 * 1024 * 1024;
const maxStderrBytes = 64 * 1024;
const graceMs = 2000;

/**
 * Runs a program without a shell, in a process group of its own. When the signal fires or the time is over the whole group is
 * ended (SIGTERM, after 2 s SIGKILL) and the reason is thrown once it is gone. Rejects with the system's error when it cannot start.
 */
export async function runProcess(
  argv: readonly [string, ...string[]],
  options: ProcessOptions,
): Promise<ProcessResult> {
  using link = new LinkedAbort([options.signal], {
    ms: options.timeoutMs,
    reason: options.timeoutReason,
  });
  link.signal.throwIfAborted();
  const [program, ...args] = argv;
  const child = spawn(program, args, {
    cwd: options.cwd,
    env: options.variables,
    detached: true,
    stdio: ['pipe', 'pipe', 'pipe'],
  });
  const stdout = collect(child.stdout, maxStdoutBytes, () =>
    link.abort(new Error(`${program} wrote more than ${maxStdoutBytes} bytes`)),
  );
  const stderr = collect(child.stderr, maxStderrBytes, () => undefined);
  child.stdin.on('error', () => undefined); // it may end before it has read everything
  child.stdin.end(options.input);
  const exitCode = await ending(child, link.signal);
  link.signal.throwIfAborted();
  return { exitCode, stdout: stdout(), stderr: stderr() };
}

async function ending(child: ChildProcess, signal: AbortSignal): Promise<number | null> {
  let force: NodeJS.Timeout | undefined;
  const stop = (): void => {
    killGroup(child, 'SIGTERM');
    force = setTimeout(() => {
      killGroup(child, 'SIGKILL');
      child.stdout?.destroy(); // someone outside the group may still hold the pipes
      child.stderr?.destroy();
    }, graceMs);
  };
  signal.addEventListener('abort', stop, { once: true });
  try {
    return await new Promise<number | null>((resolve, reject) => {
      child.once('error', reject);
      child.once('close', (code) => resolve(code));
    });
  } finally {
    signal.removeEventListener('abort', stop);
    clearTimeout(force);
    if (signal.aborted) killGroup(child, 'SIGKILL');
  }
}

function killGroup(child: ChildProcess, signal: NodeJS.Signals): void {
  if (child.pid === undefined) return;
  try {
    process.kill(-child.pid, signal);
  } catch {
    // the group is gone already
  }
}

/** Keeps the last `limit` bytes; `overflow` is called when there were more. */
function collect(stream: NodeJS.ReadableStream, limit: number, overflow: () => void): () => string {
  const chunks: Buffer[] = [];
  let size = 0;
  stream.on('data', (chunk: Buffer) => {
    chunks.push(chunk);
    size += chunk.length;
    if (size > limit) overflow();
    for (let first = chunks[0]; first && size - first.length >= limit; first = chunks[0]) {
      size -= first.length;
      chunks.shift();
    }
  });
  return () => Buffer.concat(chunks).toString('utf8');
}
