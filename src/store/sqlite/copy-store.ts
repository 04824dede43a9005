import { rm } from 'node:fs/promises';
import { dirname, resolve } from 'node:path';
import { Worker } from 'node:worker_threads';
import type { Logger } from '../../core/logger.ts';
import type { LockPort } from '../../core/lock.ts';
import { RolloutError } from '../../core/errors.ts';
import { schemaSteps, type SchemaStep } from './schema.ts';
import { errorOf } from '../../core/error-fault.ts';
import { syncFolder } from '../sync-folder.ts';
import { holdFolder, storeFile } from './store-folder.ts';
import { workerFile } from './store-thread.ts';
import type { ToolAnswer, ToolTask } from './tool-worker.ts';

/** A consistent copy of the file at `path`, which appears whole or not at all. The server may run meanwhile, in this process or another. */
export async function copyStore(file: string, path: string, signal: AbortSignal): Promise<void> {
  const target = resolve(path);
  if (target.startsWith(resolve(file)))
    throw new RolloutError('CONFIG_INVALID', `${target} is a file of the store itself`, {
      phase: 'config',
      remedy: 'Name another file for the copy.',
    });
  try {
    await runTool({ kind: 'copy', file, target }, signal);
  } catch (error) {
    await rm(`${target}.part`, { force: true });
    throw error;
  }
  await syncFolder(dirname(target));
}

/** `slipway store backup`: see {@link copyStore}. */
export async function backupStoreFolder(
  folder: string,
  path: string,
  signal: AbortSignal,
): Promise<void> {
  await copyStore(storeFile(folder), path, signal);
}

/**
 * `slipway store downgrade`: takes the file of a stopped server back to an earlier schema version, after a copy beside it (`store.sqlite.v<N>`). Rejects with
 * STORE_LOCKED, or with STORE_UNSUPPORTED when a step on the way cannot be undone.
 */
export async function downgradeStoreFolder(
  folder: string,
  target: number,
  parts: {
    readonly locks: LockPort;
    readonly logger: Logger;
    readonly signal: AbortSignal;
    /** For tests. */
    readonly steps?: readonly SchemaStep[];
  },
): Promise<{ readonly from: number; readonly to: number; readonly copy: string | null }> {
  const { locks, logger, signal, steps = schemaSteps } = parts;
  const lock = await holdFolder(folder, locks);
  try {
    const file = storeFile(folder);
    const answer = await runTool({ kind: 'downgrade', file, target, steps }, signal);
    logger.log('info', 'the store was downgraded', { file, version: target, copy: answer.copy });
    return { from: answer.from, to: target, copy: answer.copy };
  } finally {
    lock.release();
  }
}

/** Runs one piece of work on a file in a thread of its own; it ends with the work, or with `signal` at the next chance. */
async function runTool(
  task: ToolTask,
  signal: AbortSignal,
): Promise<ToolAnswer & { kind: 'done' }> {
  signal.throwIfAborted();
  const worker = new Worker(workerFile('tool-worker'), { workerData: task });
  const { promise, resolve: settle, reject } = Promise.withResolvers<ToolAnswer>();
  const onAbort = (): void => reject(signal.reason as Error);
  signal.addEventListener('abort', onAbort, { once: true });
  worker.on('message', settle);
  worker.on('error', reject);
  worker.on('exit', () =>
    reject(
      new RolloutError('STORE_FAILED', `the work on ${task.file} ended without an answer`, {
        phase: 'server',
      }),
    ),
  );
  try {
    const answer = await promise;
    if (answer.kind === 'failed') throw errorOf(answer.fault);
    return answer;
  } finally {
    signal.removeEventListener('abort', onAbort);
    await worker.terminate();
  }
}
