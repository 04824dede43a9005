/** Where a task keeps its scripts: `.sh` on Linux, `.bat` on Windows, a step's own before the shared one. */
import path from 'node:path';
import { isFile, isFolder } from './file-presence.ts';
import type { TaskEnvironment } from './task.ts';

type Os = TaskEnvironment['os'];

const extensions = { linux: ['.sh'], windows: ['.bat'] } as const satisfies Record<Os, string[]>;

/** Absolute path of `<stem>.sh` or `<stem>.bat` in a folder; without an OS `.sh` comes first. null = there is none. */
export async function findScript(
  dir: string,
  stem: 'test' | 'solve',
  os: Os | null,
): Promise<string | null> {
  const candidates = os === null ? [...extensions.linux, ...extensions.windows] : extensions[os];
  for (const extension of candidates) {
    const file = path.join(dir, `${stem}${extension}`);
    if (await isFile(file)) return file;
  }
  return null;
}

export interface ScriptQuery {
  /** The task folder. */
  readonly dir: string;
  readonly os: Os;
  /** null for a single-step task. */
  readonly stepName: string | null;
}

/** The test script of a task or step: the step's own, else the shared one; null = there is none. */
export async function findTestScript({ dir, os, stepName }: ScriptQuery): Promise<string | null> {
  const own =
    stepName === null ? null : await findScript(stepFolder(dir, stepName, 'tests'), 'test', os);
  return own ?? (await findScript(path.join(dir, 'tests'), 'test', os));
}

/** The solution script of a task or step. A step that has a solution folder uses only that; null = there is none. */
export async function findSolutionScript({
  dir,
  os,
  stepName,
}: ScriptQuery): Promise<string | null> {
  const own = stepName === null ? null : stepFolder(dir, stepName, 'solution');
  const folder = own !== null && (await isFolder(own)) ? own : path.join(dir, 'solution');
  return findScript(folder, 'solve', os);
}

/** A folder or file of a step, `steps/<name>/<part>`. */
export function stepFolder(dir: string, stepName: string, part = ''): string {
  return path.join(dir, 'steps', stepName, part);
}
