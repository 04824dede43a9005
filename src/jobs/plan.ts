/** Which trials a job consists of, in the order in which they start: attempt, then task, then agent. */
import { RolloutError } from '../core/errors.ts';
import { generateTrialName } from '../trial/trial-name.ts';
import type { JobConfig } from '../wire/harbor/job-config.ts';
import { trialConfigSchema, type TrialConfig } from '../wire/harbor/trial-config.ts';
import type { JobTask } from './job-task.ts';

export interface PlannedTrial {
  readonly config: TrialConfig;
  readonly task: JobTask;
}

export interface PlanOptions {
  readonly config: JobConfig;
  readonly jobId: string;
  /** Absolute job folder: trials are its sub-folders. */
  readonly jobDir: string;
  readonly tasks: readonly JobTask[];
  /** Folder names that are taken. */
  readonly takenNames: ReadonlySet<string>;
}

/** DATASET_EMPTY without tasks. Names are unique even where case does not count, because sandbox names are lower case. */
export function planTrials(options: PlanOptions): PlannedTrial[] {
  const { config, tasks } = options;
  if (tasks.length === 0)
    throw new RolloutError('DATASET_EMPTY', 'there is no task to run', {
      phase: 'resolve',
      field: '--path',
      remedy: 'Name a task or dataset with --path, --task, --dataset or in the job file.',
    });
  const taken = new Set([...options.takenNames].map((name) => name.toLowerCase()));
  const planned: PlannedTrial[] = [];
  for (let attempt = 0; attempt < config.n_attempts; attempt += 1)
    for (const task of tasks)
      for (const agent of config.agents) {
        const trialName = freeName(task.name, taken);
        planned.push({ task, config: trialConfig(options, task, { agent, trialName }) });
      }
  return planned;
}

function trialConfig(
  { config, jobId, jobDir }: PlanOptions,
  task: JobTask,
  trial: { readonly agent: JobConfig['agents'][number]; readonly trialName: string },
): TrialConfig {
  return trialConfigSchema.parse({
    task: task.entry,
    trial_name: trial.trialName,
    trials_dir: jobDir,
    install_only: config.install_only,
    timeout_multiplier: config.timeout_multiplier,
    agent_timeout_multiplier: config.agent_timeout_multiplier,
    verifier_timeout_multiplier: config.verifier_timeout_multiplier,
    agent_setup_timeout_multiplier: config.agent_setup_timeout_multiplier,
    environment_build_timeout_multiplier: config.environment_build_timeout_multiplier,
    agent: trial.agent,
    environment: config.environment,
    verifier: config.verifier,
    artifacts: config.artifacts,
    extra_instruction_paths: config.extra_instruction_paths,
    extra_instructions: config.extra_instructions,
    job_id: jobId,
  });
}

/** A generated name that no other trial of the folder has. */
function freeName(taskName: string, taken: Set<string>): string {
  for (;;) {
    const name = generateTrialName(taskName);
    if (taken.has(name.toLowerCase())) continue;
    taken.add(name.toLowerCase());
    return name;
  }
}
