import { stat } from 'node:fs/promises';
import path from 'node:path';
import { refusedStatuses } from './exit-status.ts';

const idForm = /^[A-Za-z0-9][A-Za-z0-9._-]*$/;

export type FoundTask =
  | { readonly dir: string; readonly exitStatus?: never }
  | { readonly dir?: never; readonly exitStatus: string };

/** The folder of a task: one name below `tasksDir`, nothing else. */
export async function findTask(tasksDir: string, instanceId: string): Promise<FoundTask> {
  if (!idForm.test(instanceId)) return { exitStatus: refusedStatuses.instance };
  const dir = path.join(tasksDir, instanceId);
  const entry = await stat(dir).catch(() => null);
  return entry?.isDirectory() === true ? { dir } : { exitStatus: refusedStatuses.task };
}
