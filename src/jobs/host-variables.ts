/** Which variables of the host a task's templates name, and which of them are missing. */
import type { Task, TemplateMap } from '../tasks/task.ts';
import type { JobConfig } from '../wire/harbor/job-config.ts';
import type { HostVariables } from '../wire/harbor/sensitive.ts';

export interface VariableUse {
  readonly name: string;
  /** `environment.env.TOKEN`. */
  readonly field: string;
  /** Set on the host, or with a default of its own. */
  readonly isKnown: boolean;
}

const template = /^\$\{([^}:]+)(:-[^]*)?\}$/;

/** Uses in `[environment].env`, `[verifier].env` of task and steps, and `[solution].env` for the oracle; less what the job sets itself. */
export function hostVariableUses(task: Task, job: JobConfig, host: HostVariables): VariableUse[] {
  const hasOracle = job.agents.some(({ name }) => name === 'oracle');
  const verifies = !job.verifier.disable;
  return [
    ...usesOf('environment.env', task.environment.env, { set: job.environment.env, host }),
    ...(verifies ? usesOf('verifier.env', task.verifier.env, { set: job.verifier.env, host }) : []),
    ...(verifies
      ? task.steps.flatMap((step, index) =>
          usesOf(`steps[${index}].verifier.env`, step.verifier.env, {
            set: job.verifier.env,
            host,
          }),
        )
      : []),
    ...(hasOracle ? usesOf('solution.env', task.solutionEnv, { set: {}, host }) : []),
  ];
}

function usesOf(
  field: string,
  templates: TemplateMap,
  known: { readonly set: TemplateMap; readonly host: HostVariables },
): VariableUse[] {
  return Object.entries(templates).flatMap(([key, value]) => {
    const match = template.exec(value);
    const name = match?.[1];
    if (name === undefined || key in known.set) return [];
    const isKnown = known.host[name] !== undefined || match?.[2] !== undefined;
    return [{ name, field: `${field}.${key}`, isKnown }];
  });
}
