import type { TrialConfig } from '../wire/harbor/trial-config.ts';
import { secretsOf } from './redact.ts';
import type { TrialPlan } from './trial-plan.ts';

/** Every secret that a trial was given: the configured literals, and what their templates and the task's resolved to. */
export function trialSecrets(config: TrialConfig, plan: TrialPlan | null): readonly string[] {
  const { agent, verifier, environment } = config;
  return secretsOf([
    agent.env,
    verifier.env,
    environment.env,
    ...(plan === null
      ? []
      : [
          plan.agentEnv,
          plan.sandbox.env,
          ...plan.rounds.flatMap((round) => [
            round.verifier?.env ?? {},
            round.verifier?.sandbox?.env ?? {},
          ]),
        ]),
  ]);
}
