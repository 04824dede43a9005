/** Makes the lock of a job: per trial, everything that decides what it does, as digests and masked configuration. */
import { lockTrial } from '../trial/trial-lock.ts';
import type { TrialInputs } from '../trial/trial-options.ts';
import { dumpEnvironmentConfig } from '../wire/harbor/dump.ts';
import type { JobConfig } from '../wire/harbor/job-config.ts';
import { jobLockSchema, type JobLock } from '../wire/harbor/job-lock.ts';
import type { HostVariables } from '../wire/harbor/sensitive.ts';
import type { TrialConfig } from '../wire/harbor/trial-config.ts';
import type { TrialLock } from '../wire/harbor/trial-lock.ts';

/** A trial whose task could be loaded. */
export interface LockableTrial {
  readonly config: TrialConfig;
  readonly inputs: TrialInputs;
}

export interface LockOptions {
  readonly config: JobConfig;
  /** Planned trials; those whose task cannot be loaded have nothing to lock. */
  readonly trials: readonly LockableTrial[];
  readonly hostVariables: HostVariables;
  readonly createdAt: Date;
  /** Of this program. */
  readonly version: string;
  readonly signal: AbortSignal;
}

/** CONFIG_INVALID when an extra instruction or compose file cannot be read. */
export async function makeJobLock(options: LockOptions): Promise<JobLock> {
  const { config, trials, hostVariables, signal } = options;
  const locks: TrialLock[] = [];
  for (const trial of trials)
    locks.push(await lockTrial(trial.config, trial.inputs, { hostVariables, signal }));
  return jobLockSchema.parse({
    created_at: options.createdAt.toISOString(),
    harbor: { version: `slipway ${options.version}`, is_editable: false },
    n_concurrent_trials: config.n_concurrent_trials,
    retry: config.retry,
    trials: locks,
  });
}

/** The lock as it is written: without nulls, as Harbor writes it; environments by the names that Harbor reads. */
export function dumpJobLock(lock: JobLock, host: HostVariables): unknown {
  return withoutNulls({
    ...lock,
    trials: lock.trials.map((trial) => ({
      ...trial,
      environment: dumpEnvironmentConfig(trial.environment, host),
    })),
  });
}

function withoutNulls(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withoutNulls);
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(
    Object.entries(value)
      .filter(([, part]) => part !== null)
      .map(([key, part]) => [key, withoutNulls(part)]),
  );
}
