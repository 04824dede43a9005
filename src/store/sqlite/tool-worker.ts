/** The body of a thread that does one piece of work on a store's file and ends. */
import { existsSync } from 'node:fs';
import { DatabaseSync } from 'node:sqlite';
import { parentPort, workerData } from 'node:worker_threads';
import { RolloutError } from '../../core/errors.ts';
import { copyInto, downgrade } from './migrate.ts';
import { openForWriting } from './open-database.ts';
import type { SchemaStep } from './schema.ts';
import type { ErrorFault } from '../../core/error-fault.ts';
import { faultOf } from './store-fault.ts';

export type ToolTask =
  | { readonly kind: 'copy'; readonly file: string; readonly target: string }
  | {
      readonly kind: 'downgrade';
      readonly file: string;
      readonly target: number;
      readonly steps: readonly SchemaStep[];
    };

export type ToolAnswer =
  | { readonly kind: 'done'; readonly from: number; readonly copy: string | null }
  | { readonly kind: 'failed'; readonly fault: ErrorFault };

function answerTo(task: ToolTask): ToolAnswer {
  try {
    if (!existsSync(task.file))
      throw new RolloutError('STORE_FAILED', `${task.file} does not exist`, {
        phase: 'server',
        remedy: 'Name the data folder of a server.',
      });
    return { kind: 'done', ...work(task) };
  } catch (error) {
    return { kind: 'failed', fault: faultOf(error) };
  }
}

function work(task: ToolTask): { readonly from: number; readonly copy: string | null } {
  const database =
    task.kind === 'copy'
      ? new DatabaseSync(task.file, { readOnly: true })
      : openForWriting(task.file, null);
  try {
    if (task.kind === 'downgrade') return downgrade(database, task.file, task);
    database.exec('PRAGMA busy_timeout = 10000');
    copyInto(database, task.target);
    return { from: 0, copy: task.target };
  } finally {
    database.close();
  }
}

parentPort?.postMessage(answerTo(workerData as ToolTask)); // from copy-store.ts
