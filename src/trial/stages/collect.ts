import { RolloutError } from '../../core/errors.ts';
import type { CollectHook } from '../../tasks/task.ts';
import { appendManifest } from '../artifact-manifest.ts';
import { ArtifactCollection, mainOrService } from '../collect-artifacts.ts';
import { problemOf } from '../sandboxes.ts';
import type { RoundRun, Stage } from '../stage.ts';

/**
 * The sandbox's own hooks and artifacts, then those of its services. Before the services are read, the last round of a separate verifier stops the
 * sandbox itself, so that nothing in it changes their evidence. All of it is best effort.
 */
export const collect: Stage<RoundRun> = {
  name: 'collecting artifacts',
  phase: 'collect',
  isSalvage: true,
  applies: (run) =>
    run.state.isEnvironmentUp && (run.round.step === null || run.outcome.agentExecution !== null),
  async run(run, signal) {
    try {
      await run.record.timed('collect_ms', () => collectAll(run, signal));
    } catch (error) {
      signal.throwIfAborted();
      run.record.warn(`artifacts are incomplete: ${problemOf(error)}`);
    }
  },
};

async function collectAll(run: RoundRun, signal: AbortSignal): Promise<void> {
  const { round, environment, folders, logger } = run;
  const collection = new ArtifactCollection(folders.artifacts, logger);
  const scope = run.roundDeadline.child('collect');
  const pass = async (isMain: boolean): Promise<void> => {
    const belongs = (entry: { readonly service: string | null }): boolean =>
      (entry.service === null) === isMain;
    const hooks = round.hooks.filter(belongs);
    await scope.within(isMain ? 'hooks' : 'service-hooks', {
      signal,
      expired,
      work: (limited) => runHooks(run, hooks, limited),
    });
    const artifacts = round.artifacts.filter(belongs);
    await scope.within(isMain ? 'artifacts' : 'service-artifacts', {
      signal,
      expired,
      work: async (limited) => {
        const entries = await collection.collect(artifacts, mainOrService(environment), limited);
        await appendManifest(folders.artifacts, entries);
      },
    });
  };
  await pass(true);
  if (![...round.hooks, ...round.artifacts].some((entry) => entry.service !== null)) return;
  if (round.verifier?.mode === 'separate' && isLastRound(run))
    await scope.within('stop', {
      signal,
      expired,
      work: (limited) => environment.service('main').stop(limited),
    });
  await pass(false);
}

async function runHooks(
  run: RoundRun,
  hooks: readonly CollectHook[],
  signal: AbortSignal,
): Promise<void> {
  for (const { command, service, timeoutMs, user } of hooks) {
    const target = service === null ? run.environment : run.environment.service(service);
    try {
      const { exitCode } = await target.exec({ command, user, timeoutMs }, signal);
      if (exitCode !== 0) run.record.warn(`the collect hook ${command} exited with ${exitCode}`);
    } catch (error) {
      signal.throwIfAborted();
      run.record.warn(`the collect hook ${command} failed: ${problemOf(error)}`);
    }
  }
}

export function isLastRound({ round, plan }: RoundRun): boolean {
  return round.index === plan.rounds.length - 1;
}

function expired(limitMs: number): RolloutError {
  return new RolloutError(
    'TRANSFER_FAILED',
    `collecting was not finished within ${limitMs / 1000} s`,
    { phase: 'collect', field: 'artifacts', remedy: 'Declare fewer or smaller artifacts.' },
  );
}
