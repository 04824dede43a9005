import type { Clock } from '../core/clock.ts';
import { isRolloutError, RolloutError } from '../core/errors.ts';
import type { Environment, ExecResult } from '../environments/environment.ts';
import type { Healthcheck, User } from '../tasks/task.ts';

export interface HealthcheckRun {
  readonly check: Healthcheck;
  readonly environment: Pick<Environment, 'exec'>;
  /** null = the image's user. */
  readonly user: User | null;
  readonly clock: Clock;
  /** Dotted path of the check in task.toml. */
  readonly field: string;
}

/**
 * Repeats the command until it exits with 0. Attempts that began within the start period do not count; after it `retries` failures in a row
 * are HEALTHCHECK_FAILED. An attempt that runs into its own limit is a failure like any other.
 */
export async function waitUntilHealthy(run: HealthcheckRun, signal: AbortSignal): Promise<void> {
  const { check, clock } = run;
  const beganMs = clock.monotonicMs();
  for (let failures = 0; ;) {
    const attemptMs = clock.monotonicMs();
    const problem = await attempt(run, signal);
    if (problem === null) return;
    if (attemptMs - beganMs < check.startPeriodMs) {
      await clock.sleep(check.startIntervalMs, signal);
      continue;
    }
    failures += 1;
    if (failures >= check.retries) throw unhealthy(run, failures, problem);
    await clock.sleep(check.intervalMs, signal);
  }
}

/** null = healthy, else what was wrong. */
async function attempt(run: HealthcheckRun, signal: AbortSignal): Promise<string | null> {
  const { check, environment, user } = run;
  try {
    const result = await environment.exec(
      { command: check.command, user, timeoutMs: check.timeoutMs },
      signal,
    );
    return result.exitCode === 0 ? null : said(result);
  } catch (error) {
    if (isRolloutError(error, 'EXEC_TIMEOUT')) return `no answer within ${check.timeoutMs} ms`;
    throw error;
  }
}

function said({ exitCode, stdout, stderr }: ExecResult): string {
  const output = `${stdout}\n${stderr}`.trim().slice(-500);
  return output === '' ? `exit ${exitCode}` : `exit ${exitCode}: ${output}`;
}

function unhealthy({ check, field }: HealthcheckRun, failures: number, problem: string) {
  return new RolloutError('HEALTHCHECK_FAILED', `not healthy after ${failures} attempts`, {
    phase: 'environment',
    field: `${field}.command`,
    remedy: 'Check the command, or raise retries, interval_sec or start_period_sec.',
    detail: `${check.command}\n${problem}`,
  });
}
