/** Every environment by name; its code is loaded when it is first asked for. */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import type { Clock } from '../core/clock.ts';
import { RolloutError } from '../core/errors.ts';
import type { LockPort } from '../core/lock.ts';
import type { Logger } from '../core/logger.ts';
import type { EnvironmentProvider } from './environment.ts';

/** What an environment is made from. */
export interface EnvironmentSettings {
  /** Absolute folder for sandboxes and records. */
  readonly stateDir: string;
  /** Absolute folder for images. */
  readonly cacheDir: string;
  /** PEM file for builds and sandboxes; null = none. */
  readonly extraCaBundle: string | null;
  /** Plain processes may stand in for a sandbox. */
  readonly allowUnsandboxed: boolean;
  /** `environment.kwargs` of the job: the environment's own options, in snake_case or camelCase; it checks them. */
  readonly kwargs: Readonly<Record<string, unknown>>;
  readonly hostVariables: Readonly<Record<string, string | undefined>>;
  readonly clock: Clock;
  readonly locks: LockPort;
  readonly logger: Logger;
}

type Factory = (settings: EnvironmentSettings) => Promise<EnvironmentProvider>;

const environments: ReadonlyMap<string, Factory> = new Map<string, Factory>([
  [
    'local',
    async (settings) => {
      const { LocalProvider } = await import('./local/local-provider.ts');
      const { clock, locks, logger } = settings;
      return new LocalProvider(
        {
          ...optionsOf(settings),
          stateDir: settings.stateDir,
          cacheDir: settings.cacheDir,
          isUnsandboxedAllowed: settings.allowUnsandboxed,
        },
        { clock, locks, logger },
      );
    },
  ],
  [
    'docker',
    async (settings) => {
      const { DockerProvider } = await import('./docker/docker-provider.ts');
      const { clock, logger, hostVariables } = settings;
      return new DockerProvider(
        { ...dockerVariables(settings), ...optionsOf(settings) },
        { clock, logger, hostVariables },
      );
    },
  ],
  [
    'daytona',
    async (settings) => {
      const { DaytonaProvider } = await import('./daytona/daytona-provider.ts');
      const { clock, logger } = settings;
      return new DaytonaProvider(
        { ...daytonaVariables(settings), ...optionsOf(settings) },
        { clock, logger },
      );
    },
  ],
  [
    'kubernetes',
    async (settings) => {
      const { KubernetesProvider } = await import('./kubernetes/kubernetes-provider.ts');
      const { clock, logger, hostVariables } = settings;
      return new KubernetesProvider(
        { extraCaBundle: settings.extraCaBundle, ...ownOptions(settings) },
        { clock, logger, hostVariables },
      );
    },
  ],
  [
    'skypilot',
    async (settings) => {
      const { SkypilotProvider } = await import('./skypilot/skypilot-provider.ts');
      const { clock, logger, hostVariables, extraCaBundle, locks, cacheDir } = settings;
      // An option that is empty is one that is unset.
      const given = Object.entries(ownOptions(settings)).filter(([, value]) => value !== '');
      const registry = hostVariables['HARBOR_SKYPILOT_REGISTRY'] ?? null;
      return new SkypilotProvider(
        { extraCaBundle, registry, ...Object.fromEntries(given) },
        { clock, logger, hostVariables, buildLocks: { locks, dir: join(cacheDir, 'locks') } },
      );
    },
  ],
]);

export const environmentNames: readonly string[] = [...environments.keys()];

/** ENVIRONMENT_UNKNOWN lists the names; CONFIG_INVALID names an option that the environment does not have. */
export async function resolveEnvironment(
  name: string,
  settings: EnvironmentSettings,
): Promise<EnvironmentProvider> {
  const make = environments.get(name);
  if (make !== undefined) return await make(settings);
  throw new RolloutError(
    'ENVIRONMENT_UNKNOWN',
    `no environment is called ${JSON.stringify(name)}`,
    {
      phase: 'config',
      field: 'environment.type',
      remedy: `Use one of: ${environmentNames.join(', ')}.`,
    },
  );
}

/** Shared settings, and the job's own options over them. */
function optionsOf(settings: EnvironmentSettings): Record<string, unknown> {
  const archives = join(settings.cacheDir, 'base-images');
  return {
    imageArchivesDir: existsSync(archives) ? archives : null,
    extraCaBundle: settings.extraCaBundle,
    ...ownOptions(settings),
  };
}

function ownOptions({ kwargs }: EnvironmentSettings): Record<string, unknown> {
  return Object.fromEntries(Object.entries(kwargs).map(([key, value]) => [camelCase(key), value]));
}

function camelCase(key: string): string {
  return key.replace(/_([a-z0-9])/g, (_, letter: string) => letter.toUpperCase());
}

/** The variables that Daytona's own clients read. */
function daytonaVariables({ hostVariables }: EnvironmentSettings): Record<string, unknown> {
  const names = {
    apiUrl: 'DAYTONA_API_URL',
    apiKey: 'DAYTONA_API_KEY',
    jwtToken: 'DAYTONA_JWT_TOKEN',
    organizationId: 'DAYTONA_ORGANIZATION_ID',
    target: 'DAYTONA_TARGET',
  };
  return Object.fromEntries(
    Object.entries(names)
      .map(([option, variable]): [string, string] => [option, hostVariables[variable] ?? ''])
      .filter(([, value]) => value !== ''),
  );
}

function dockerVariables({
  hostVariables,
  cacheDir,
}: EnvironmentSettings): Record<string, unknown> {
  const set = (name: string): string | null =>
    hostVariables[name] === '' ? null : (hostVariables[name] ?? null);
  const ownConfig = join(cacheDir, 'docker-config');
  const host = set('DOCKER_HOST');
  const config = set('DOCKER_CONFIG') ?? (existsSync(ownConfig) ? ownConfig : null);
  return {
    ...(host !== null && { host }),
    ...(set('DOCKER_TLS_VERIFY') !== null && { certPath: set('DOCKER_CERT_PATH') }),
    ...(config !== null && { dockerConfigDir: config }),
    ...(set('DOCKER_DEFAULT_PLATFORM') !== null && { platform: set('DOCKER_DEFAULT_PLATFORM') }),
  };
}
