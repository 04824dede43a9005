import { existsSync } from 'node:fs';
import path from 'node:path';
import { RolloutError } from '../core/errors.ts';
import { lowerId } from '../core/ids.ts';
import { LinkedAbort } from '../core/linked-abort.ts';
import type { Logger } from '../core/logger.ts';
import type { EnvironmentProvider } from '../environments/environment.ts';
import { politeProvider } from '../environments/shared/polite-provider.ts';
import { splitOptions, type ProviderSettings } from '../environments/shared/provider-settings.ts';
import { checkGatewayUrl } from '../environments/shared/remote-gateway.ts';
import { SqliteSandboxLedger } from '../store/sqlite/sqlite-sandbox-ledger.ts';
import type { AppPorts } from './ports.ts';

export interface ProviderOptions {
  readonly allowUnsandboxed: boolean;
  readonly kwargs: Readonly<Record<string, unknown>>;
  readonly logger: Logger;
}

/** Makes an environment's provider with the settings of this machine, held to what all of its processes may create; nothing is probed yet. */
export async function makeProvider(
  name: string,
  options: ProviderOptions,
  ports: AppPorts,
): Promise<EnvironmentProvider> {
  const { machine, clock, locks } = ports;
  const { own, settings } = splitOptions(options.kwargs);
  const provider = await ports.resolveProvider(name, {
    stateDir: machine.stateDir,
    cacheDir: machine.cacheDir,
    extraCaBundle: machine.extraCaBundle,
    hostVariables: machine.variables,
    clock,
    locks,
    ...options,
    kwargs: own,
  });
  try {
    if (provider.isRemote === true && settings.gatewayUrl !== null)
      checkGatewayUrl(settings.gatewayUrl);
    return polite(provider, { settings, logger: options.logger, ports });
  } catch (error) {
    await provider.close();
    throw error;
  }
}

/**
 * Where somebody pays for sandboxes or limits them, and then on this machine for good: a run that cleans up must be able to say that a sandbox is gone.
 */
function polite(
  provider: EnvironmentProvider,
  {
    settings: { limits },
    logger,
    ports: { machine, clock },
  }: {
    readonly settings: ProviderSettings;
    readonly logger: Logger;
    readonly ports: AppPorts;
  },
): EnvironmentProvider {
  const file = path.join(machine.stateDir, 'sandbox-ledger.sqlite');
  const isLimited = Object.values(limits).some((limit) => limit !== null);
  if (provider.isRemote !== true && !isLimited && !existsSync(file)) return provider;
  return politeProvider(provider, {
    ledger: SqliteSandboxLedger.open(file),
    limits,
    clock,
    logger,
    random: Math.random,
    owner: `${process.pid}-${lowerId(8)}`,
  });
}

/** An engine that does not answer must not hold up a run that does not need it. */
const probeLimitMs = 10_000;

/** The other environments that work on this machine, for cleaning up: a dead run may have used one of them. */
export async function usableProviders(
  names: readonly string[],
  options: { readonly logger: Logger; readonly signal: AbortSignal },
  ports: AppPorts,
): Promise<ReadonlyMap<string, EnvironmentProvider>> {
  const { logger, signal } = options;
  const usable = new Map<string, EnvironmentProvider>();
  using limit = new LinkedAbort([signal], {
    ms: probeLimitMs,
    reason: () =>
      new RolloutError('ENVIRONMENT_UNAVAILABLE', 'it did not answer in time', {
        phase: 'environment',
      }),
  });
  const probe = async (name: string): Promise<void> => {
    // Nothing is run by it: what a dead run of plain processes left is removed without being asked again.
    const settings = { allowUnsandboxed: true, kwargs: {}, logger };
    const provider = await makeProvider(name, settings, ports);
    try {
      await provider.preflight(limit.signal);
      usable.set(provider.kind, provider);
    } catch {
      // Not on this machine: nothing of it can be found or removed now.
      await provider.close();
      signal.throwIfAborted();
    }
  };
  await Promise.all(names.map(probe));
  return usable;
}
