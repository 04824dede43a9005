import { referencedVariables } from '../tasks/environment-templates.ts';
import { secretOptions, type HostVariables } from '../wire/harbor/sensitive.ts';
import type { TrialConfig } from '../wire/harbor/trial-config.ts';
import { secretsOf } from './redact.ts';
import type { TrialPlan } from './trial-plan.ts';

/** Every secret that a trial was given: the configured literals, and what their templates and the task's resolved to. */
export function trialSecrets(
  config: TrialConfig,
  {
    plan,
    hostVariables,
  }: { readonly plan: TrialPlan | null; readonly hostVariables: HostVariables },
): readonly string[] {
  const { agent, verifier, environment } = config;
  return secretsOf([
    agent.env,
    verifier.env,
    environment.env,
    ...secretOptions(agent.kwargs).map((value) => ({ KEY: value })),
    ...(plan === null ? [] : [...plannedTables(plan), ...referencedTables(plan, hostVariables)]),
  ]);
}

function plannedTables(plan: TrialPlan): readonly Readonly<Record<string, string>>[] {
  return [
    plan.agentEnv,
    plan.sandbox.env,
    ...plan.rounds.flatMap((round) => [
      round.verifier?.env ?? {},
      round.verifier?.sandbox?.env ?? {},
    ]),
  ];
}

/** The task's own tables, the solution's among them, which is resolved only when the oracle runs. */
function referencedTables(
  { task }: TrialPlan,
  hostVariables: HostVariables,
): readonly Readonly<Record<string, string>>[] {
  return referencedVariables(task).map(({ key, variable }) => ({
    [key]: hostVariables[variable] ?? '',
  }));
}
