import { spawn, type ChildProcess, type StdioOptions } from 'node:child_process';
import type { Readable } from 'node:stream';
import { RolloutError } from '../../../core/errors.ts';
import { LinkedAbort } from '../../../core/linked-abort.ts';
import { hostSearchPath } from '../host-command.ts';
import type { SandboxFolder } from '../sandbox-folder.ts';

/** A program of the host that serves one sandbox. */
export interface HostChild {
  /** SIGKILLs it and waits for its end. Idempotent. */
  stop(): Promise<void>;
}

/** Name server of the user-mode network, from inside. */
export const userNetworkDns = '10.0.2.3';

const readyMs = 10_000;

/**
 * Gives the namespace of a sandbox a way to the outside by slirp4netns, with the host's own loopback kept out. It ends when this
 * process does (the exit descriptor closes).
 */
export async function startUserNetwork(
  folder: SandboxFolder,
  initPid: number,
  signal: AbortSignal,
): Promise<HostChild> {
  const child = spawnServing(folder, {
    file: 'slirp4netns',
    args: [
      ...['--configure', '--mtu=65520', '--disable-host-loopback'],
      ...['--ready-fd=3', '--exit-fd=4', String(initPid), 'tap0'],
    ],
    stdio: ['ignore', 'ignore', 'pipe', 'pipe', 'pipe'],
  });
  const ready = child.stdio[3] as Readable;
  await untilReady(child, { signal, what: 'slirp4netns', isReady: once(ready) });
  return stoppable(child);
}

/** Starts a program whose command line names the sandbox's folder, by which a later cleaning finds it. */
export function spawnServing(
  folder: SandboxFolder,
  command: {
    readonly file: string;
    readonly args: readonly string[];
    readonly stdio: StdioOptions;
    readonly cwd?: string;
  },
): ChildProcess {
  return spawn(command.file, command.args, {
    stdio: command.stdio,
    argv0: `${command.file}:${folder.dir}`,
    cwd: command.cwd ?? '/',
    env: { PATH: hostSearchPath() },
  });
}

/** Waits for `isReady`; a program that ends first, or takes too long, is ENVIRONMENT_START_FAILED. */
export async function untilReady(
  child: ChildProcess,
  options: {
    readonly signal: AbortSignal;
    readonly what: string;
    readonly isReady: Promise<unknown>;
  },
): Promise<void> {
  let said = '';
  child.stderr?.on('data', (chunk: Buffer) => {
    said = (said + chunk.toString('utf8')).slice(-2000);
  });
  using limit = new LinkedAbort([options.signal], {
    ms: readyMs,
    reason: () => failed(options.what, `not ready after ${readyMs} ms`),
  });
  const ended = Promise.withResolvers<never>();
  const onEnd = (): void => ended.reject(failed(options.what, said.trim()));
  const onError = (error: Error): void => ended.reject(failed(options.what, error.message));
  const onAbort = (): void => ended.reject(limit.signal.reason as Error);
  child.once('exit', onEnd).once('error', onError);
  limit.signal.addEventListener('abort', onAbort, { once: true });
  try {
    if (limit.signal.aborted) onAbort();
    await Promise.race([options.isReady, ended.promise]);
  } catch (error) {
    child.kill('SIGKILL');
    throw error;
  } finally {
    child.off('exit', onEnd).off('error', onError);
    child.on('error', () => undefined);
    limit.signal.removeEventListener('abort', onAbort);
  }
}

export function stoppable(child: ChildProcess): HostChild {
  return {
    stop: () =>
      new Promise((resolve) => {
        if (child.exitCode !== null || child.signalCode !== null) {
          resolve();
          return;
        }
        child.once('exit', () => resolve());
        child.kill('SIGKILL');
      }),
  };
}

function once(stream: Readable): Promise<void> {
  return new Promise((resolve) => {
    stream.once('data', () => resolve());
  });
}

function failed(what: string, why: string): RolloutError {
  return new RolloutError('ENVIRONMENT_START_FAILED', `${what}: ${why}`, { phase: 'environment' });
}
