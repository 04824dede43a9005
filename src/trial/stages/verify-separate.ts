import { RolloutError } from '../../core/errors.ts';
import { sandboxVerifierDir } from '../../verifier/run-tests.ts';
import type { Environment } from '../../environments/environment.ts';
import type { DeadlineScope } from '../deadline-scope.ts';
import { underNetwork } from '../network-phase.ts';
import { takeBackFolders } from '../sandbox-folders.ts';
import { problemOf } from '../sandboxes.ts';
import type { RoundRun, Stage } from '../stage.ts';
import { ownLimits } from '../timeouts.ts';
import { transferArtifacts } from '../transfer-artifacts.ts';
import type { SandboxPlan } from '../sandbox-plan.ts';
import type { RoundVerifier } from '../trial-plan.ts';
import { verifyIn } from '../verification.ts';
import { isLastRound } from './collect.ts';
import { startExpired } from './start-environment.ts';

/** Verifies in a sandbox of its own, which gets the collected artifacts and nothing else of the agent's. */
export const verifySeparate: Stage<RoundRun> = {
  name: 'running separate verifier',
  phase: 'verifier',
  applies: (run) => run.round.verifier?.mode === 'separate',
  async run(run, signal) {
    const { verifier } = run.round;
    if (verifier?.sandbox == null) return;
    const { sandbox } = verifier;
    const scope = run.roundDeadline.child('verifier');
    await run.record.timed('verifier_ms', () =>
      run.record.stamped(
        (timing) => (run.outcome.verifierTiming = timing),
        () => verifyElsewhere(run, { verifier, sandbox, scope }, signal),
      ),
    );
  },
};

interface Separate {
  readonly verifier: RoundVerifier;
  readonly sandbox: SandboxPlan;
  readonly scope: DeadlineScope;
}

async function verifyElsewhere(
  run: RoundRun,
  { verifier, sandbox, scope }: Separate,
  signal: AbortSignal,
): Promise<void> {
  const { network, step, artifacts } = run.round;
  const environment = run.sandboxes.make(sandbox, {
    part: `verifier-${step?.name ?? 'trial'}`,
    forceBuild: false,
    lifetimeMs: scope.remainingMs,
  });
  try {
    await scope.within('environment', {
      signal,
      expired: startExpired,
      work: (limited) => startVerifier(run, environment, limited),
    });
    await scope.within('transfer', {
      signal,
      expired: transferExpired,
      work: async (limited) => {
        const folder = { dir: sandboxVerifierDir, mode: '0777', parents: true };
        await takeBackFolders(environment, [folder], limited);
        const { artifacts: artifactsDir } = run.folders;
        await transferArtifacts(environment, { artifactsDir, artifacts }, limited);
      },
    });
    const phase = {
      environment,
      baseline: network.verifierEnvironment,
      policy: network.verifier,
    };
    await underNetwork(phase, signal, () =>
      verifyIn(run, { environment, verifier, scope }, signal),
    );
  } finally {
    if (!signal.aborted) await destroyVerifier(run, environment);
  }
}

/** After the last round the agent's sandbox stops first: two never run longer side by side than they have to. */
async function startVerifier(
  run: RoundRun,
  environment: Environment,
  signal: AbortSignal,
): Promise<void> {
  if (isLastRound(run) && run.state.isEnvironmentUp) await run.environment.stop(signal);
  await environment.start({ signal, onProgress: run.progress });
}

/** What cannot be removed now is tried again when the trial cleans up. */
async function destroyVerifier(run: RoundRun, environment: Environment): Promise<void> {
  try {
    await run.sandboxes.destroy(environment, ownLimits.destroyMs);
  } catch (error) {
    run.logger.log('warn', 'the sandbox of the verifier was not removed', {
      reason: problemOf(error),
    });
  }
}

function transferExpired(limitMs: number): RolloutError {
  return new RolloutError(
    'TRANSFER_FAILED',
    `the artifacts were not in the verifier's sandbox after ${limitMs / 1000} s`,
    { phase: 'verifier', field: 'artifacts', remedy: 'Declare fewer or smaller artifacts.' },
  );
}
