/** Runs the tests in one sandbox and reads their verdict: the part that a shared and a separate verifier have in common. */
import { RolloutError } from '../core/errors.ts';
import type { Environment } from '../environments/environment.ts';
import { runTestScript, sandboxVerifierDir, uploadTests } from '../verifier/run-tests.ts';
import { downloadVerifierOutput, readVerdict } from '../verifier/verifier-output.ts';
import type { DeadlineScope } from './deadline-scope.ts';
import { problemOf } from './sandboxes.ts';
import type { RoundRun } from './stage.ts';
import type { RoundVerifier } from './trial-plan.ts';

export interface Verification {
  readonly environment: Environment;
  readonly verifier: RoundVerifier;
  /** The round's span `verifier`. */
  readonly scope: DeadlineScope;
}

/** Keeps the verdict in the round's record. Rejects with what went wrong; then there is no verdict. */
export async function verifyIn(
  run: RoundRun,
  { environment, verifier, scope }: Verification,
  signal: AbortSignal,
): Promise<void> {
  const { tests, env, user } = verifier;
  const { outcome, folders } = run;
  await scope.within('tests', {
    signal,
    expired: uploadExpired,
    work: (limited) => uploadTests(environment, tests, limited),
  });
  try {
    outcome.verifierExitCode = await scope.within('script', {
      signal,
      expired: scriptExpired,
      work: (limited) => runTestScript(environment, { tests, env, user }, limited),
    });
  } catch (error) {
    signal.throwIfAborted();
    await saveOutput(run, { environment, verifier, scope }, signal);
    throw error;
  }
  const skipped = await readOutput(run, { environment, verifier, scope }, signal);
  outcome.rewards = await readVerdict(folders.verifier, {
    skipped,
    exitCode: outcome.verifierExitCode,
  });
}

async function readOutput(
  run: RoundRun,
  { environment, scope }: Verification,
  signal: AbortSignal,
): Promise<readonly string[]> {
  const { include_logs: include, exclude_logs: exclude } = run.plan.config.verifier;
  return await scope.within('read', {
    signal,
    expired: readExpired,
    work: (limited) =>
      downloadVerifierOutput(
        environment,
        { dir: run.folders.verifier, filters: { include, exclude } },
        limited,
      ),
  });
}

/** What a verifier printed before it failed helps its author; it is no verdict. */
async function saveOutput(
  run: RoundRun,
  verification: Verification,
  signal: AbortSignal,
): Promise<void> {
  try {
    await readOutput(run, verification, signal);
  } catch (error) {
    signal.throwIfAborted();
    run.record.warn(`the verifier's output is incomplete: ${problemOf(error)}`);
  }
}

function scriptExpired(limitMs: number): RolloutError {
  return new RolloutError(
    'VERIFIER_TIMEOUT',
    `the test script ran longer than ${limitMs / 1000} s`,
    {
      phase: 'verifier',
      field: 'verifier.timeout_sec',
      remedy: 'Raise verifier.timeout_sec or --verifier-timeout-multiplier.',
    },
  );
}

function uploadExpired(limitMs: number): RolloutError {
  return new RolloutError(
    'TESTS_UPLOAD_FAILED',
    `the tests were not in the sandbox after ${limitMs / 1000} s`,
    { phase: 'verifier', field: 'tests', remedy: 'Make tests/ smaller.' },
  );
}

function readExpired(limitMs: number): RolloutError {
  return new RolloutError(
    'VERIFIER_OUTPUT_UNAVAILABLE',
    `the verifier's output was not read after ${limitMs / 1000} s`,
    {
      phase: 'verifier',
      field: sandboxVerifierDir,
      remedy: 'Let the tests leave less in this folder.',
    },
  );
}
