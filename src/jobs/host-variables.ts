/** Which variables of the host a task's templates name, and which of them are missing. */
import { referencedVariables, type VariableReference } from '../tasks/environment-templates.ts';
import type { Task } from '../tasks/task.ts';
import type { JobConfig } from '../wire/harbor/job-config.ts';
import type { HostVariables } from '../wire/harbor/sensitive.ts';

export interface VariableUse {
  readonly name: string;
  /** `environment.env.TOKEN`. */
  readonly field: string;
  /** Where its value comes from: the host first, else the default that the template gives. */
  readonly state: 'set' | 'default' | 'missing';
}

/** What the task's trials of this job will ask for: the verifier's part when it runs, the solution's for the oracle, less what the job sets itself. */
export function hostVariableUses(task: Task, job: JobConfig, host: HostVariables): VariableUse[] {
  return referencedVariables(task)
    .filter((reference) => isAskedFor(reference, job))
    .map(({ variable, hasDefault, field }) => ({
      name: variable,
      field,
      state: host[variable] !== undefined ? 'set' : hasDefault ? 'default' : 'missing',
    }));
}

function isAskedFor({ scope, key }: VariableReference, job: JobConfig): boolean {
  switch (scope) {
    case 'environment':
      return !Object.hasOwn(job.environment.env, key);
    case 'verifier':
      return !job.verifier.disable && !Object.hasOwn(job.verifier.env, key);
    case 'verifier-environment':
      return !job.verifier.disable && !Object.hasOwn(job.environment.env, key);
    case 'solution':
      return job.agents.some(({ name }) => name === 'oracle');
  }
}
