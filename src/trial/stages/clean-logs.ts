import { attribute, RolloutError } from '../../core/errors.ts';
import { takeBackFolders } from '../sandbox-folders.ts';
import { sandboxTestsDir } from '../../verifier/test-script.ts';
import { sandboxVerifierDir } from '../../verifier/run-tests.ts';
import type { RoundRun, Stage } from '../stage.ts';

/** Takes `/logs/verifier` and `/tests` back from the agent: what it planted there is gone before the verifier comes. */
export const cleanLogs: Stage<RoundRun> = {
  name: 'cleaning verifier folders',
  phase: 'verifier',
  applies: (run) => run.round.verifier?.mode === 'shared',
  async run(run, signal) {
    const clean = (limited: AbortSignal): Promise<void> =>
      takeBackFolders(
        run.environment,
        [
          { dir: sandboxVerifierDir, mode: '0777', parents: true },
          { dir: sandboxTestsDir, mode: '0755' },
        ],
        limited,
      );
    try {
      await run.record.timed('verifier_ms', () =>
        run.roundDeadline.child('verifier').within('clean', { signal, expired, work: clean }),
      );
    } catch (error) {
      signal.throwIfAborted();
      throw asVerifierFailure(error);
    }
  },
};

/** A folder that cannot be taken back ends the verification: a verdict from it would be worth nothing. */
function asVerifierFailure(error: unknown): RolloutError {
  const known = attribute(error, 'VERIFIER_FAILED', 'verifier', 'verifier folders');
  if (known.code !== 'EXEC_FAILED') return known;
  return new RolloutError(
    'VERIFIER_FAILED',
    `${sandboxVerifierDir} and ${sandboxTestsDir} could not be cleaned`,
    {
      phase: 'verifier',
      field: sandboxVerifierDir,
      remedy: 'Use an image in which root may empty both folders.',
      cause: known,
      retryable: false,
      ...(known.detail !== null && { detail: known.detail }),
    },
  );
}

function expired(limitMs: number): RolloutError {
  return new RolloutError(
    'VERIFIER_FAILED',
    `the verifier's folders were not clean after ${limitMs / 1000} s`,
    {
      phase: 'verifier',
      field: sandboxVerifierDir,
      remedy: 'Let the agent leave less in the folders of the verifier.',
    },
  );
}
