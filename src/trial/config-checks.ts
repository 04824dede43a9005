import { RolloutError } from '../core/errors.ts';
import type { TrialConfig } from '../wire/harbor/trial-config.ts';

/** Parts of Harbor's configuration that Slipway reads but does not run: each is refused by name instead of being ignored. */
export function refuseUnsupportedConfig(config: TrialConfig, warn: (text: string) => void): void {
  if (config.user_agent !== null)
    throw refusal('user_agent', 'simulated users are not supported', 'Leave user_agent out.');
  if (config.verifier.import_path !== null)
    throw refusal(
      'verifier.import_path',
      'verifier classes are not supported',
      'Let the task bring tests/test.sh.',
    );
  if (Object.keys(config.verifier.kwargs).length > 0)
    throw invalid('verifier.kwargs', 'kwargs need verifier.import_path', 'Leave kwargs out.');
  if (config.environment.mounts.length > 0)
    throw refusal(
      'environment.mounts',
      'mounting host folders into a sandbox is not supported',
      'Bring the files with the image, or with a skill.',
    );
  for (const [field, value] of negativeTimes(config))
    throw invalid(field, `${value} is negative`, 'Give a time or a factor of at least 0.');
  if (!config.environment.delete)
    warn(
      'environment.delete = false has no effect: sandboxes are always removed, images are always kept',
    );
}

function* negativeTimes(config: TrialConfig): Generator<readonly [string, number]> {
  const fields: Readonly<Record<string, number | null>> = {
    timeout_multiplier: config.timeout_multiplier,
    agent_timeout_multiplier: config.agent_timeout_multiplier,
    verifier_timeout_multiplier: config.verifier_timeout_multiplier,
    agent_setup_timeout_multiplier: config.agent_setup_timeout_multiplier,
    environment_build_timeout_multiplier: config.environment_build_timeout_multiplier,
    'agent.override_timeout_sec': config.agent.override_timeout_sec,
    'agent.override_setup_timeout_sec': config.agent.override_setup_timeout_sec,
    'agent.max_timeout_sec': config.agent.max_timeout_sec,
    'verifier.override_timeout_sec': config.verifier.override_timeout_sec,
    'verifier.max_timeout_sec': config.verifier.max_timeout_sec,
  };
  for (const [field, value] of Object.entries(fields))
    if (value !== null && value < 0) yield [field, value];
}

function refusal(field: string, message: string, remedy: string): RolloutError {
  return new RolloutError('CAPABILITY_UNSUPPORTED', message, { phase: 'config', field, remedy });
}

function invalid(field: string, message: string, remedy: string): RolloutError {
  return new RolloutError('CONFIG_INVALID', message, { phase: 'config', field, remedy });
}
