/** Looking at finished trials, and grading them again. */
import { readdir } from 'node:fs/promises';
import { basename, join, relative, resolve } from 'node:path';
import { RolloutError } from '../core/errors.ts';
import { JobFolder, readStoredTrial, type StoredTrial } from '../jobs/job-folder.ts';
import { summarize, type TrialSummary } from '../jobs/trial-summary.ts';
import { jobConfigSchema, type JobConfig } from '../wire/harbor/job-config.ts';
import type { TrialConfig } from '../wire/harbor/trial-config.ts';
import type { TrialResult } from '../wire/harbor/trial-result.ts';
import type { AppPorts } from './ports.ts';

type FinishedTrial = Extract<StoredTrial, { readonly state: 'finished' }>;

export interface TrialList {
  readonly trials: readonly TrialSummary[];
  /** Folders without a usable result. */
  readonly others: readonly { readonly name: string; readonly state: string }[];
}

/** JOB_UNREADABLE when the folder holds no trial at all. */
export async function listTrials(dir: string): Promise<TrialList> {
  const stored = await new JobFolder(resolve(dir)).trials();
  if (stored.every(({ state }) => state === 'foreign'))
    throw unreadable(dir, 'holds no trial', 'Name a job folder.');
  return {
    trials: stored.flatMap((trial) =>
      trial.state === 'finished' ? [summarize(trial.result)] : [],
    ),
    others: stored.flatMap(({ name, state }) => (state === 'finished' ? [] : [{ name, state }])),
  };
}

export interface TrialView {
  readonly result: TrialResult;
  readonly summary: TrialSummary;
  /** Relative paths of the trial's files, sorted; at most {@link mostFiles}. */
  readonly files: readonly string[];
}

const mostFiles = 200;

export async function showTrial(path: string): Promise<TrialView> {
  const dir = resolve(path);
  const { result } = await finishedTrial(dir);
  const entries = await readdir(dir, { recursive: true, withFileTypes: true });
  const files = entries
    .filter((entry) => entry.isFile())
    .map((entry) => relative(dir, join(entry.parentPath, entry.name)))
    .sort()
    .slice(0, mostFiles);
  return { result, summary: summarize(result), files };
}

async function finishedTrial(dir: string): Promise<FinishedTrial> {
  const trial = await readStoredTrial(dir, basename(dir));
  if (trial.state === 'finished') return trial;
  const what = trial.state === 'unreadable' ? trial.reason : 'holds no finished trial';
  throw unreadable(dir, what, 'Name a trial folder with a result.json.');
}

function unreadable(dir: string, what: string, remedy: string): RolloutError {
  return new RolloutError('JOB_UNREADABLE', `${dir}: ${what}`, {
    phase: 'config',
    field: dir,
    remedy,
  });
}

export interface RegradeOptions {
  /** A trial folder or a job folder. */
  readonly path: string;
  readonly jobsDir: string;
  /** Empty = made from the local time. */
  readonly jobName: string;
  /** null = that of the source. */
  readonly environment: string | null;
}

export type SourceTrial = NonNullable<TrialConfig['source_trial']>;

export interface Regrade {
  readonly config: JobConfig;
  /** One per task of `config`, in order. */
  readonly sources: readonly SourceTrial[];
}

/** A job of one trial per source, without agents. What cannot be graded again fails as a trial of that job, with the reason. */
export async function regradeTrials(options: RegradeOptions, ports: AppPorts): Promise<Regrade> {
  const dir = resolve(ports.machine.cwd, options.path);
  const sources = await sourceTrials(dir);
  const [first] = sources;
  if (first === undefined)
    throw unreadable(dir, 'holds no finished trial', 'Name a trial or job folder.');
  const { environment, verifier } = first.trial.config;
  return {
    config: jobConfigSchema.parse({
      job_name: options.jobName,
      jobs_dir: options.jobsDir,
      agents: [{ name: 'nop' }],
      environment:
        options.environment === null
          ? environment
          : { ...environment, type: options.environment, import_path: null },
      verifier,
      tasks: sources.map(({ trial }) => trial.config.task),
    }),
    sources: sources.map(({ dir: path, trial }) => ({
      action: 'regrade',
      type: 'local',
      trial_id: trial.result.id,
      path,
    })),
  };
}

async function sourceTrials(
  dir: string,
): Promise<{ readonly dir: string; readonly trial: FinishedTrial }[]> {
  const own = await readStoredTrial(dir, basename(dir));
  if (own.state === 'finished') return [{ dir, trial: own }];
  const stored = await new JobFolder(dir).trials();
  return stored.flatMap((trial) =>
    trial.state === 'finished' ? [{ dir: join(dir, trial.name), trial }] : [],
  );
}
