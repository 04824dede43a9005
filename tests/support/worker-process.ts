/** `slipway worker` as a child process, ended or killed by the test. */
import path from 'node:path';
import { startServeProcess, type ServeProcess, type ServeProcessOptions } from './serve-process.ts';
import { repositoryDir } from './slipway-cli.ts';

export type WorkerProcess = Pick<
  ServeProcess,
  'child' | 'errors' | 'stop' | 'kill' | typeof Symbol.asyncDispose
>;

/** Resolves when it takes work. Disposing ends it, by force when it does not go. */
export async function startWorkerProcess(
  flags: readonly string[],
  options: ServeProcessOptions,
): Promise<WorkerProcess> {
  const program = [path.join(repositoryDir, 'bin/slipway.js'), 'worker'];
  return await startServeProcess(flags, { program, ...options });
}
