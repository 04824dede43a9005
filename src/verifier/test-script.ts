import { stat } from 'node:fs/promises';
import path from 'node:path';
import { RolloutError } from '../core/errors.ts';
import type { Task } from '../tasks/task.ts';

/** Folder in the sandbox that the tests are brought to, in the moment of verification. */
export const sandboxTestsDir = '/tests';

const scriptName = 'test.sh';

/** What has to be brought into the sandbox, and what to run there. */
export interface TestScript {
  /** Host folders whose contents go to `/tests`, in order: a later one wins. */
  readonly uploads: readonly string[];
  /** Path in the sandbox. */
  readonly script: string;
  /** Every user may run it as it is uploaded. */
  readonly isExecutable: boolean;
}

/**
 * Shared verifier: the task's `tests/`, then the step's; the script of the step, else the shared one. TASK_TESTS_MISSING without one.
 * Separate verifier: nothing is brought, the image has its own `/tests/test.sh`.
 */
export async function findTestScript(task: Task, step: string | null): Promise<TestScript> {
  const script = `${sandboxTestsDir}/${scriptName}`;
  const dirs = [
    path.join(task.dir, 'tests'),
    ...(step === null ? [] : [path.join(task.dir, 'steps', step, 'tests')]),
  ];
  const uploads: string[] = [];
  let mode: number | null = null;
  for (const dir of dirs) {
    if (!(await isThere(dir))) continue;
    uploads.push(dir);
    const found = await stat(path.join(dir, scriptName)).catch(() => null);
    mode = found?.mode ?? mode;
  }
  if (mode !== null) return { uploads, script, isExecutable: (mode & 0o555) === 0o555 };
  const field = path.relative(task.dir, path.join(dirs.at(-1) ?? task.dir, scriptName));
  throw new RolloutError('TASK_TESTS_MISSING', `the task has no ${field}`, {
    phase: 'verifier',
    field,
    remedy: `Write ${field}, or give the verifier an environment of its own.`,
  });
}

export const separateTestScript: TestScript = {
  uploads: [],
  script: `${sandboxTestsDir}/${scriptName}`,
  isExecutable: false,
};

async function isThere(file: string): Promise<boolean> {
  return (await stat(file).catch(() => null)) !== null;
}
