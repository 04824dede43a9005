import { basename, dirname, resolve } from 'node:path';
import { RolloutError } from '../core/errors.ts';
import { JobFolder } from '../jobs/job-folder.ts';
import { jobIdOf, readStoredJob, refuseRedacted } from '../jobs/resume.ts';
import { namesOf, summarize } from '../jobs/trial-summary.ts';
import type { JobConfig } from '../wire/harbor/job-config.ts';
import { ownJob } from './job-owner.ts';
import type { AppPorts } from './ports.ts';

export interface PreparedResume {
  /** What `runJob` takes to finish the job. */
  readonly config: JobConfig;
  /** Trials that ended with one of the types: their folders are gone, they run again. */
  readonly removed: readonly string[];
}

/**
 * Reads a stored job and removes its trials that ended with one of the exception types or error codes. JOB_UNREADABLE when there is no job,
 * JOB_CONFLICT while it runs, CONFIG_INVALID when a secret was not stored.
 */
export async function prepareResume(
  options: { readonly dir: string; readonly types: readonly string[] },
  ports: AppPorts,
): Promise<PreparedResume> {
  const dir = resolve(ports.machine.cwd, options.dir);
  const folder = new JobFolder(dir);
  using held = new DisposableStack();
  held.use(ownJob(folder, ports));
  const stored = await readStoredJob(folder);
  if (stored === null)
    throw new RolloutError('JOB_UNREADABLE', `${dir} holds no job`, {
      phase: 'config',
      field: '--path',
      remedy: 'Name a job folder, as slipway run prints it.',
    });
  refuseRedacted(stored.config);
  const jobId = jobIdOf(stored);
  const types = new Set(options.types);
  const removed: string[] = [];
  for (const trial of stored.trials) {
    if (trial.state !== 'finished' || trial.config.job_id !== jobId) continue;
    const { failure } = summarize(trial.result);
    if (failure === null || !namesOf(failure).some((name) => types.has(name))) continue;
    await folder.removeTrial(trial.name);
    removed.push(trial.name);
  }
  return {
    config: { ...stored.config, job_name: basename(dir), jobs_dir: dirname(dir) },
    removed,
  };
}
