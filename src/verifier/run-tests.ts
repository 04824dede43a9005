import { isRolloutError, RolloutError } from '../core/errors.ts';
import type { Environment } from '../environments/environment.ts';
import type { User } from '../tasks/task.ts';
import { sandboxTestsDir, type TestScript } from './test-script.ts';

/** Folder in the sandbox that the test script writes its verdict to. */
export const sandboxVerifierDir = '/logs/verifier';

/** File in it with everything the test script printed. */
export const testOutputFile = 'test-stdout.txt';

/** Brings the tests into the sandbox. TESTS_UPLOAD_FAILED when that fails; a lost sandbox, a full disk and a fired signal keep their own names. */
export async function uploadTests(
  environment: Environment,
  tests: TestScript,
  signal: AbortSignal,
): Promise<void> {
  try {
    for (const dir of tests.uploads) await environment.uploadDir(dir, sandboxTestsDir, signal);
  } catch (error) {
    if (isRolloutError(error) && error.code !== 'TRANSFER_FAILED') throw error;
    throw new RolloutError('TESTS_UPLOAD_FAILED', 'the tests could not be copied to /tests', {
      phase: 'verifier',
      field: 'tests',
      remedy: 'Run the trial again; the cause says what failed.',
      cause: error,
    });
  }
}

export interface TestRun {
  readonly tests: TestScript;
  /** Resolved variables of the verifier; the agent's are not among them. */
  readonly env: Readonly<Record<string, string>>;
  /** null = the image's user. */
  readonly user: User | null;
}

/** Runs the test script to its end and answers its exit status, which decides nothing. The limit is the signal's. */
export async function runTestScript(
  environment: Environment,
  run: TestRun,
  signal: AbortSignal,
): Promise<number> {
  const { script } = run.tests;
  if (!run.tests.isExecutable)
    await environment.exec({ command: `chmod +x ${script}`, user: 'root' }, signal);
  const { exitCode } = await environment.exec(
    {
      // The subshell keeps the redirection of a script that changes its own output.
      command: `(${script}) > ${sandboxVerifierDir}/${testOutputFile} 2>&1`,
      env: run.env,
      user: run.user,
    },
    signal,
  );
  return exitCode;
}
