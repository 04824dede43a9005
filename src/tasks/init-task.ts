import { readdir, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { boundary, RolloutError } from '../core/errors.ts';
import { makeFolder } from '../core/make-folder.ts';
import { packageName } from '../wire/harbor/task/package-table.ts';
import { errnoOf } from './file-presence.ts';
import { taskFiles } from './task-template.ts';

export interface InitTaskOptions {
  /** The task folder; made, or empty so far. */
  readonly dir: string;
  /** `org/name`, or a plain name for a task that is never published. */
  readonly name: string;
  readonly signal: AbortSignal;
}

/**
 * Writes a small complete task: it loads, the oracle solves it, and an agent that does nothing fails it. Resolves to the paths
 * written, relative to the folder. CONFIG_INVALID for a bad name or a folder that holds something.
 */
export async function initTask({ dir, name, signal }: InitTaskOptions): Promise<readonly string[]> {
  expectName(name);
  await expectEmpty(dir);
  const files = taskFiles(name);
  await boundary({ code: 'CONFIG_INVALID', phase: 'config', what: dir }, async () => {
    for (const { relative, text, isExecutable } of files) {
      signal.throwIfAborted();
      const file = path.join(dir, relative);
      await makeFolder(path.dirname(file));
      await writeFile(file, text, { mode: isExecutable ? 0o755 : 0o644 });
    }
  });
  return files.map(({ relative }) => relative);
}

function expectName(name: string): void {
  const isPlain = /^[a-zA-Z0-9][a-zA-Z0-9._-]*$/.test(name) && !name.includes('..');
  if (isPlain || packageName.safeParse(name).success) return;
  throw new RolloutError('CONFIG_INVALID', `${JSON.stringify(name)} is not a task name`, {
    phase: 'config',
    field: 'name',
    remedy: 'Give org/name, of letters, digits, ".", "_" and "-".',
  });
}

async function expectEmpty(dir: string): Promise<void> {
  const entries = await readdir(dir).catch((error: unknown) => {
    if (errnoOf(error) === 'ENOENT') return [];
    throw new RolloutError('CONFIG_INVALID', `${dir} cannot be used as a task folder`, {
      phase: 'config',
      field: 'path',
      remedy: 'Name a folder that does not exist yet.',
      cause: error,
    });
  });
  if (entries.length === 0) return;
  throw new RolloutError('CONFIG_INVALID', `${dir} is not empty`, {
    phase: 'config',
    field: 'path',
    remedy: 'Name a folder that does not exist yet.',
  });
}
