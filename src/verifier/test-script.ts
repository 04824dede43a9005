import { stat } from 'node:fs/promises';
import path from 'node:path';
import { RolloutError } from '../core/errors.ts';
import { isFolder } from '../tasks/file-presence.ts';
import { findTestScript, stepFolder } from '../tasks/scripts.ts';
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
export async function testScriptOf(task: Task, step: string | null): Promise<TestScript> {
  const { dir } = task;
  const found = await findTestScript({ dir, os: 'linux', stepName: step });
  if (found === null) throw missingTests(step);
  const { mode } = await stat(found);
  return {
    uploads: await existing([
      path.join(dir, 'tests'),
      ...(step === null ? [] : [stepFolder(dir, step, 'tests')]),
    ]),
    script: `${sandboxTestsDir}/${scriptName}`,
    isExecutable: (mode & 0o555) === 0o555,
  };
}

export const separateTestScript: TestScript = {
  uploads: [],
  script: `${sandboxTestsDir}/${scriptName}`,
  isExecutable: false,
};

async function existing(dirs: readonly string[]): Promise<readonly string[]> {
  const present = await Promise.all(dirs.map(isFolder));
  return dirs.filter((_, index) => present[index]);
}

function missingTests(step: string | null): RolloutError {
  const field = `${step === null ? '' : `steps/${step}/`}tests/${scriptName}`;
  return new RolloutError('TASK_TESTS_MISSING', `the task has no ${field}`, {
    phase: 'verifier',
    field,
    remedy: `Write ${field}, or give the verifier an environment of its own.`,
  });
}
