import type { ServeConfig } from '../../config/serve/read-serve-config.ts';
import { RolloutError } from '../../core/errors.ts';
import { portPlaceholder } from '../../environments/shared/remote-gateway.ts';
import type { EnvironmentConfig } from '../../wire/harbor/run-config.ts';

/**
 * The environment of a server's trials with the server's own address for remote sandboxes, unless its options name another one. CONFIG_INVALID
 * where one address would have to stand for the listeners of several processes.
 */
export function withGatewayAddress(
  environment: EnvironmentConfig,
  { listen, gateway }: Pick<ServeConfig, 'listen' | 'gateway'>,
): EnvironmentConfig {
  const { gatewayUrl } = listen;
  if (gatewayUrl === null) return environment;
  if (gateway.workers > 1 && !gatewayUrl.includes(portPlaceholder))
    throw new RolloutError(
      'CONFIG_INVALID',
      `${gateway.workers} processes serve model calls, each on a port of its own, and the address is one`,
      {
        phase: 'config',
        field: 'listen.gateway_url',
        remedy: `Put ${portPlaceholder} into it for the port of each, or serve with one process.`,
      },
    );
  return { ...environment, kwargs: { gateway_url: gatewayUrl, ...environment.kwargs } };
}
