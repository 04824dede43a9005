/** Makes the lock of a job: per trial, everything that decides what it does, as digests and masked configuration. */
import { createHash } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { messageOf, RolloutError } from '../core/errors.ts';
import type { SkillLock, TrialLock } from '../wire/harbor/trial-lock.ts';
import { trialLockSchema, type FileLock } from '../wire/harbor/trial-lock.ts';
import { dumpAgentConfig, dumpEnvironmentConfig, dumpVerifierConfig } from '../wire/harbor/dump.ts';
import type { JobConfig } from '../wire/harbor/job-config.ts';
import { jobLockSchema, type JobLock } from '../wire/harbor/job-lock.ts';
import type { HostVariables } from '../wire/harbor/sensitive.ts';
import type { TrialConfig } from '../wire/harbor/trial-config.ts';
import type { TaskInputs } from './job-task.ts';

/** A trial whose task could be loaded. */
export interface LockableTrial {
  readonly config: TrialConfig;
  readonly inputs: TaskInputs;
  readonly skills: readonly SkillLock[];
}

export interface LockOptions {
  readonly config: JobConfig;
  /** Planned trials; those whose task cannot be loaded have nothing to lock. */
  readonly trials: readonly LockableTrial[];
  readonly hostVariables: HostVariables;
  readonly createdAt: Date;
  /** Of this program. */
  readonly version: string;
}

/** CONFIG_INVALID when an extra instruction or compose file cannot be read. */
export async function makeJobLock(options: LockOptions): Promise<JobLock> {
  const { config, trials, hostVariables } = options;
  const files = new Map<string, Promise<FileLock>>();
  const fileLock = (field: string, path: string): Promise<FileLock> => {
    const known = files.get(path) ?? readFileLock(field, path);
    files.set(path, known);
    return known;
  };
  const locks: TrialLock[] = [];
  for (const trial of trials) locks.push(await makeTrialLock(trial, hostVariables, fileLock));
  return jobLockSchema.parse({
    created_at: options.createdAt.toISOString(),
    harbor: { version: `slipway ${options.version}`, is_editable: false },
    n_concurrent_trials: config.n_concurrent_trials,
    retry: config.retry,
    trials: locks,
  });
}

async function makeTrialLock(
  { config, inputs, skills }: LockableTrial,
  host: HostVariables,
  fileLock: (field: string, path: string) => Promise<FileLock>,
): Promise<TrialLock> {
  const instructions: FileLock[] = [];
  for (const path of config.extra_instruction_paths)
    instructions.push(await fileLock('extra_instruction_paths', path));
  for (const text of config.extra_instructions)
    instructions.push({ path: null, digest: sha256(text) });
  const composeFiles: FileLock[] = [];
  for (const path of config.environment.extra_docker_compose)
    composeFiles.push(await fileLock('environment.extra_docker_compose', path));
  return trialLockSchema.parse({
    task: inputs.taskLock,
    install_only: config.install_only,
    timeout_multiplier: config.timeout_multiplier,
    agent_timeout_multiplier: config.agent_timeout_multiplier,
    verifier_timeout_multiplier: config.verifier_timeout_multiplier,
    agent_setup_timeout_multiplier: config.agent_setup_timeout_multiplier,
    environment_build_timeout_multiplier: config.environment_build_timeout_multiplier,
    extra_instructions: instructions,
    agent: dumpAgentConfig(config.agent, host),
    skills,
    environment: dumpEnvironmentConfig(config.environment, host),
    extra_docker_compose: composeFiles,
    verifier: {
      ...dumpVerifierConfig(config.verifier, host),
      environment_mode: config.verifier.disable ? null : inputs.task.verifier.mode,
    },
    source_trial: config.source_trial,
  });
}

async function readFileLock(field: string, path: string): Promise<FileLock> {
  try {
    return { path, digest: sha256(await readFile(path)) };
  } catch (error) {
    throw new RolloutError('CONFIG_INVALID', `${path} cannot be read: ${messageOf(error)}`, {
      phase: 'config',
      field,
      remedy: 'Name a file that exists and can be read.',
      cause: error,
    });
  }
}

function sha256(content: string | Uint8Array): string {
  return `sha256:${createHash('sha256').update(content).digest('hex')}`;
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
