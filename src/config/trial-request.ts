import type { JobConfig } from '../wire/harbor/job-config.ts';
import { readDocument } from './document.ts';
import { compileJobConfig } from './job-request.ts';
import { Problems } from './problems.ts';

/** Reads a trial configuration as a job of one trial. CONFIG_INVALID lists everything that is wrong. */
export async function readTrialRequest(
  path: string,
  overrides: { readonly trialName: string | null; readonly trialsDir: string | null },
): Promise<JobConfig> {
  const document = await readDocument(path, '--config');
  const problems = new Problems();
  const { task, agent, trial_name, trials_dir, source_trial, ...rest } = document;
  if (source_trial !== undefined && source_trial !== null)
    problems.add(
      'source_trial',
      'trials are graded again by a command of its own',
      'Use slipway trials regrade.',
    );
  if (task === undefined || task === null)
    problems.add('task', 'a trial needs a task', 'Write task: {path: DIR}.');
  return compileJobConfig(
    {
      ...rest,
      job_name: overrides.trialName ?? trial_name ?? '',
      jobs_dir: overrides.trialsDir ?? trials_dir ?? 'trials',
      tasks: task === undefined || task === null ? [] : [task],
      ...(agent === undefined || agent === null ? {} : { agents: [agent] }),
      n_concurrent_trials: 1,
    },
    problems,
  );
}
