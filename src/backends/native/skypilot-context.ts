import type { EnvironmentConfig } from '../../wire/harbor/run-config.ts';

const contextVariable = 'HARBOR_SKYPILOT_CONTEXT';

/**
 * Sandboxes of SkyPilot go to the cluster that the service's own environment names, where the user named none; the user's table stays as it is.
 */
export function withSkypilotContext(
  environment: EnvironmentConfig,
  variables: Readonly<Record<string, string | undefined>>,
): EnvironmentConfig {
  const context = variables[contextVariable] ?? '';
  if (environment.type !== 'skypilot' || context === '') return environment;
  const { kwargs } = environment;
  const isSet = ['context_name', 'contextName'].some((name) => (kwargs[name] ?? '') !== '');
  return isSet ? environment : { ...environment, kwargs: { ...kwargs, context_name: context } };
}
