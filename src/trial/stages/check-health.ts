import { RolloutError } from '../../core/errors.ts';
import { waitUntilHealthy } from '../healthcheck.ts';
import type { Stage } from '../stage.ts';

/** The environment's own health check, right after start, as the image's user. */
export const checkHealth: Stage = {
  name: 'checking health',
  phase: 'environment',
  applies: (run) => run.plan.task.environment.healthcheck !== null,
  async run(run, signal) {
    const check = run.plan.task.environment.healthcheck;
    if (check === null) return;
    await run.record.timed('healthcheck_ms', () =>
      run.deadline.child('start').within('healthcheck', {
        signal,
        expired: (limitMs) => healthcheckExpired(limitMs, 'environment.healthcheck'),
        work: (limited) =>
          waitUntilHealthy(
            {
              check,
              environment: run.environment,
              user: null,
              clock: run.parts.clock,
              field: 'environment.healthcheck',
            },
            limited,
          ),
      }),
    );
  },
};

export function healthcheckExpired(limitMs: number, field: string): RolloutError {
  return new RolloutError('HEALTHCHECK_FAILED', `not healthy after ${limitMs / 1000} s`, {
    phase: 'environment',
    field,
    remedy: 'Check the command of the health check.',
  });
}
