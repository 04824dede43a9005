import { RolloutError } from '../../core/errors.ts';
import type { Stage } from '../stage.ts';
import { makeLogFolders } from '../sandbox-folders.ts';

/** Starts the sandbox and makes the folders that logs go to. */
export const startEnvironment: Stage = {
  name: 'starting environment',
  phase: 'environment',
  async run(run, signal) {
    const { record, environment } = run;
    await record.stamped(
      (timing) => (record.environmentSetup = timing),
      () =>
        run.deadline.child('start').within('environment', {
          signal,
          expired: startExpired,
          work: async (limited) => {
            const report = await environment.start({ signal: limited, onProgress: run.progress });
            record.spend('image_ms', report.imageMs);
            record.spend('boot_ms', report.bootMs);
            run.state.isEnvironmentUp = true;
            await makeLogFolders(environment, limited);
          },
        }),
    );
  },
};

export function startExpired(limitMs: number): RolloutError {
  return new RolloutError(
    'ENVIRONMENT_START_TIMEOUT',
    `the environment was not up after ${limitMs / 1000} s`,
    {
      phase: 'environment',
      field: 'environment.build_timeout_sec',
      remedy: 'Raise environment.build_timeout_sec or --environment-build-timeout-multiplier.',
    },
  );
}
