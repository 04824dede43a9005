/**
 * What an existing job folder means for a new run of the same name. Finished trials are kept and counted once; incomplete ones of this
 * job are removed and run again; everything else in the folder stays as it is.
 */
import { isDeepStrictEqual } from 'node:util';
import { canonicalJson } from '../core/canonical-json.ts';
import { RolloutError } from '../core/errors.ts';
import { dumpJobConfig } from '../wire/harbor/job-config-dump.ts';
import { jobConfigSchema, type JobConfig } from '../wire/harbor/job-config.ts';
import { jobLockSchema, keepsLock, type JobLock } from '../wire/harbor/job-lock.ts';
import type { JobResult } from '../wire/harbor/job-result.ts';
import { dumpTrialConfig } from '../wire/harbor/dump.ts';
import {
  isSensitiveName,
  isTemplate,
  secretOptions,
  type HostVariables,
} from '../wire/harbor/sensitive.ts';
import { trialConfigSchema, type TrialConfig } from '../wire/harbor/trial-config.ts';
import type { TrialResult } from '../wire/harbor/trial-result.ts';
import type { JobFolder, StoredTrial } from './job-folder.ts';
import type { PlannedTrial } from './plan.ts';

export interface StoredJob {
  readonly config: JobConfig;
  readonly lock: JobLock | null;
  readonly result: JobResult | null;
  readonly trials: readonly StoredTrial[];
}

/** null when the folder holds no job. JOB_UNREADABLE when it holds one that cannot be understood. */
export async function readStoredJob(folder: JobFolder): Promise<StoredJob | null> {
  const document = await folder.read(folder.configFile);
  const result = await folder.readResult();
  if (document === null) {
    if (result === null) return null;
    throw unreadable(folder.configFile, 'is missing beside a result.json');
  }
  const config = jobConfigSchema.safeParse(document);
  if (!config.success) throw unreadable(folder.configFile, 'is not the configuration of a job');
  const lockDocument = await folder.read(folder.lockFile);
  const lock = lockDocument === null ? null : jobLockSchema.safeParse(lockDocument);
  if (lock?.success === false) throw unreadable(folder.lockFile, 'is not the lock of a job');
  return { config: config.data, lock: lock?.data ?? null, result, trials: await folder.trials() };
}

/** null when nothing tells it. A job whose `result.json` is missing or damaged left its id in its trials. */
export function jobIdOf({ result, trials }: StoredJob): string | null {
  if (result !== null) return result.id;
  const ids = new Set(
    trials.flatMap((trial) =>
      trial.state === 'finished' || trial.state === 'incomplete' ? (trial.config.job_id ?? []) : [],
    ),
  );
  return ids.size === 1 ? ([...ids][0] ?? null) : null;
}

function unreadable(file: string, what: string): RolloutError {
  return new RolloutError('JOB_UNREADABLE', `${file} ${what}`, {
    phase: 'config',
    field: file,
    remedy: 'Restore the file, or run the job under another name.',
  });
}

/** JOB_CONFLICT unless both configurations describe one job; name and verbosity do not count. Secrets are compared masked. */
export function checkSameConfig(stored: JobConfig, wanted: JobConfig, host: HostVariables): void {
  const comparable = (config: JobConfig): Record<string, unknown> => ({
    ...dumpJobConfig(jobConfigSchema.parse(dumpJobConfig(config, host)), host),
    job_name: '',
    jobs_dir: '',
    debug: false,
    quiet: false,
  });
  const [one, other] = [comparable(stored), comparable(wanted)];
  const different = Object.keys(one).filter((key) => !isDeepStrictEqual(one[key], other[key]));
  if (different.length === 0) return;
  throw conflict(
    `the job of this name was started with another ${different.join(', ')}`,
    different[0],
  );
}

/** JOB_CONFLICT when a task, skill or file has changed since the job began. */
export function checkSameLock(stored: JobLock | null, wanted: JobLock): void {
  if (stored === null || keepsLock(stored, wanted)) return;
  throw conflict('a task, skill or file of the job has changed since it began', 'lock.json');
}

function conflict(message: string, field: string | undefined): RolloutError {
  return new RolloutError('JOB_CONFLICT', message, {
    phase: 'config',
    field: field ?? 'job_name',
    remedy: 'Give the job another --job-name, or use the options and tasks it was started with.',
  });
}

export interface Resumption {
  /** Results that count. */
  readonly finished: readonly TrialResult[];
  /** Planned trials that still have to run. */
  readonly remaining: readonly PlannedTrial[];
  /** Folders of trials of this job that ended without a result: to be removed. */
  readonly incomplete: readonly string[];
  /** Folders left alone although they look like ours, with the reason. */
  readonly leftAlone: readonly { readonly name: string; readonly reason: string }[];
}

/**
 * Matches stored results one to one with the plan; names do not count. JOB_CONFLICT when a stored trial of this job has no
 * counterpart. Trials of another job id are foreign.
 */
export function resumeTrials(
  stored: StoredJob,
  planned: readonly PlannedTrial[],
  options: { readonly jobId: string; readonly hostVariables: HostVariables },
): Resumption {
  const before = stored.result?.n_total_trials ?? 0;
  if (before > 0 && before !== planned.length)
    throw conflict(`the job had ${before} trials and would now have ${planned.length}`, 'datasets');
  const open = new Map<string, PlannedTrial[]>();
  for (const trial of planned) {
    const key = trialKey(trial.config, options.hostVariables);
    open.set(key, [...(open.get(key) ?? []), trial]);
  }
  const finished: TrialResult[] = [];
  const done = new Set<PlannedTrial>();
  for (const trial of stored.trials) {
    if (trial.state !== 'finished' || trial.config.job_id !== options.jobId) continue;
    const counterpart = open.get(trialKey(trial.config, options.hostVariables))?.shift();
    if (counterpart === undefined)
      throw conflict(`trial ${trial.name} is no part of the job any more`, trial.name);
    done.add(counterpart);
    finished.push(trial.result);
  }
  return {
    finished,
    remaining: planned.filter((trial) => !done.has(trial)),
    incomplete: stored.trials.flatMap((trial) =>
      trial.state === 'incomplete' && trial.config.job_id === options.jobId ? [trial.name] : [],
    ),
    leftAlone: stored.trials.flatMap((trial) => leftAlone(trial, options.jobId)),
  };
}

function leftAlone(trial: StoredTrial, jobId: string): Resumption['leftAlone'] {
  if (trial.state === 'unreadable') return [{ name: trial.name, reason: trial.reason }];
  if (trial.state === 'foreign') return [{ name: trial.name, reason: 'not a trial' }];
  if (trial.config.job_id === jobId) return [];
  return [{ name: trial.name, reason: 'a trial of another job' }];
}

/** Equal for configurations that describe the same trial; see `isSameTrial`. */
function trialKey(config: TrialConfig, host: HostVariables): string {
  const masked = trialConfigSchema.parse(dumpTrialConfig(config, host));
  return canonicalJson({
    ...dumpTrialConfig(masked, host),
    trial_name: '',
    trials_dir: '',
    job_id: null,
  });
}

const redacted = /^(?:\*{4}|.{4}\*{4}.{3})$/s;

/** CONFIG_INVALID when a stored configuration holds a redacted secret: it cannot be run from the file alone. */
export function refuseRedacted(config: JobConfig): void {
  const maps = [
    ...config.agents.map((agent, index) => [`agents[${index}].env`, agent.env] as const),
    ['environment.env', config.environment.env] as const,
    ['verifier.env', config.verifier.env] as const,
  ];
  for (const [field, variables] of maps)
    for (const [name, value] of Object.entries(variables))
      if (isSensitiveName(name) && !isTemplate(value) && redacted.test(value))
        throw new RolloutError('CONFIG_INVALID', `the value of ${name} was not stored`, {
          phase: 'config',
          field: `${field}.${name}`,
          remedy: `Start the job again with slipway run and the same --job-name, giving ${name} as before.`,
        });
  config.agents.forEach(({ kwargs }, index) => {
    refuseRedactedOptions(kwargs, `agents[${index}].kwargs`);
  });
}

function refuseRedactedOptions(options: Readonly<Record<string, unknown>>, field: string): void {
  for (const [name, value] of Object.entries(options)) {
    if (typeof value === 'object' && value !== null)
      refuseRedactedOptions(value as Record<string, unknown>, `${field}.${name}`);
    if (typeof value !== 'string' || !isMaskedOption(name, value)) continue;
    throw new RolloutError('CONFIG_INVALID', `the value of ${name} was not stored`, {
      phase: 'config',
      field: `${field}.${name}`,
      remedy: `Start the job again with slipway run and the same --job-name, giving ${name} as before.`,
    });
  }
}

/** It reads as what masking leaves, under a name or in a place where something is masked. */
function isMaskedOption(name: string, value: string): boolean {
  if (value.includes('://****@')) return true;
  return redacted.test(value) && secretOptions({ [name]: value }).length > 0;
}
