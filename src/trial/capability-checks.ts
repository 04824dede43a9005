/** What a trial asks of its environment against what the environment declares: checked before anything is started. */
import { RolloutError } from '../core/errors.ts';
import type {
  EnvironmentProvider,
  ImageSource,
  ResourceLimits,
} from '../environments/environment.ts';
import type { TaskEnvironment, User } from '../tasks/task.ts';
import type { EnvironmentConfig, ResourcePolicy } from '../wire/harbor/run-config.ts';
import type { NetworkPolicy } from '../wire/network-policy.ts';

/** Processes that a sandbox may have at once, where the environment can limit them: room for any build, none for a fork bomb. */
const maxProcesses = 8192;

export function unsupported(
  provider: Pick<EnvironmentProvider, 'kind'>,
  field: string,
  { needs, remedy }: { readonly needs: string; readonly remedy?: string },
): RolloutError {
  const message = `the environment "${provider.kind}" does not offer ${needs}`;
  return new RolloutError('CAPABILITY_UNSUPPORTED', message, {
    phase: 'environment',
    field,
    remedy: remedy ?? 'Run this task in an environment that does, for example --env docker.',
  });
}

export function checkImage(provider: EnvironmentProvider, image: ImageSource): void {
  const { capabilities } = provider;
  if (image.kind === 'compose' && !capabilities.compose)
    throw unsupported(provider, 'environment/docker-compose.yaml', {
      needs: 'side services by compose',
      remedy: 'Run this task with --env docker.',
    });
  if (image.kind === 'dockerfile' && !capabilities.build)
    throw unsupported(provider, 'environment/Dockerfile', {
      needs: 'building images',
      remedy: 'Name a prebuilt image in environment.docker_image.',
    });
}

export function checkDevices(provider: EnvironmentProvider, environment: TaskEnvironment): void {
  const { capabilities } = provider;
  if (environment.gpus > 0 && !capabilities.gpus)
    throw unsupported(provider, 'environment.gpus', { needs: 'GPUs' });
  if (environment.tpu !== null && !capabilities.tpus)
    throw unsupported(provider, 'environment.tpu', { needs: 'TPUs' });
  if (environment.os === 'windows' && !capabilities.windows)
    throw unsupported(provider, 'environment.os', { needs: 'Windows' });
}

export function checkUser(provider: EnvironmentProvider, user: User | null, field: string): void {
  if (user !== null && !provider.capabilities.users)
    throw unsupported(provider, field, { needs: 'commands as another user' });
}

export function checkNetwork(
  provider: EnvironmentProvider,
  policy: NetworkPolicy,
  field: string,
): void {
  const { noNetwork, allowlist } = provider.capabilities;
  if (policy.mode === 'no-network' && !noNetwork)
    throw unsupported(provider, field, { needs: 'network_mode = "no-network"' });
  if (policy.mode === 'allowlist' && !allowlist)
    throw unsupported(provider, field, { needs: 'network_mode = "allowlist"' });
}

/** The policies of the phases that differ from the baseline; they need switching while the sandbox runs. */
export function checkLaterNetworks(
  provider: EnvironmentProvider,
  policies: readonly NetworkPolicy[],
  field: string,
): void {
  for (const policy of policies) checkNetwork(provider, policy, field);
  if (policies.length > 0 && !provider.capabilities.dynamicNetworkPolicy)
    throw unsupported(provider, field, {
      needs: 'another network policy in one phase than in the rest of the trial',
    });
}

/** The limits of a sandbox under the run's policies; `warn` hears about what is dropped. */
export function resolveLimits(
  provider: EnvironmentProvider,
  { wanted, config, warn }: LimitsQuery,
): ResourceLimits {
  const { capabilities } = provider;
  const limit = (resource: LimitedResource): number | null => {
    const { field, canLimit, policy, value } = resource;
    if (policy === 'ignore') return null;
    if (policy === 'auto') {
      if (value === null || canLimit) return value;
      warn(`${field} is ignored: the environment "${provider.kind}" cannot limit it`);
      return null;
    }
    return enforced(provider, resource);
  };
  if (wanted.storageMb !== null && !capabilities.diskQuota)
    warn(`environment.storage_mb is ignored: the environment "${provider.kind}" has no disk quota`);
  return {
    cpus: limit({
      field: 'environment.cpus',
      canLimit: capabilities.cpuLimit,
      policy: config.cpu_enforcement_policy,
      value: wanted.cpus,
    }),
    memoryMb: limit({
      field: 'environment.memory_mb',
      canLimit: capabilities.memoryLimit,
      policy: config.memory_enforcement_policy,
      value: wanted.memoryMb,
    }),
    storageMb: capabilities.diskQuota ? wanted.storageMb : null,
    pids: capabilities.pidsLimit ? maxProcesses : null,
  };
}

interface LimitsQuery {
  readonly wanted: Pick<TaskEnvironment, 'cpus' | 'memoryMb' | 'storageMb'>;
  readonly config: Pick<EnvironmentConfig, 'cpu_enforcement_policy' | 'memory_enforcement_policy'>;
  readonly warn: (text: string) => void;
}

interface LimitedResource {
  readonly field: string;
  readonly canLimit: boolean;
  readonly policy: ResourcePolicy;
  readonly value: number | null;
}

/** `limit`, `request` and `guarantee` need the capability and a value. No environment of ours reserves resources. */
function enforced(
  provider: EnvironmentProvider,
  { field, canLimit, policy, value }: LimitedResource,
): number {
  if (policy !== 'limit')
    throw unsupported(provider, field, {
      needs: `reserved resources (policy "${policy}")`,
      remedy: 'Use the policy "limit", "auto" or "ignore".',
    });
  if (!canLimit) throw unsupported(provider, field, { needs: `a limit for ${field}` });
  if (value !== null) return value;
  throw new RolloutError('CONFIG_INVALID', `the policy "limit" needs a value for ${field}`, {
    phase: 'config',
    field,
    remedy: `Set ${field} in task.toml or override it for the run.`,
  });
}

/** The environment section with the run's overrides in place; 0 and absent both mean "not overridden". */
export function withOverrides(
  environment: TaskEnvironment,
  config: EnvironmentConfig,
): TaskEnvironment {
  const positive = (value: number | null): number | null =>
    value === null || value <= 0 ? null : value;
  return {
    ...environment,
    cpus: positive(config.override_cpus) ?? environment.cpus,
    memoryMb: positive(config.override_memory_mb) ?? environment.memoryMb,
    storageMb: positive(config.override_storage_mb) ?? environment.storageMb,
    gpus: config.override_gpus ?? environment.gpus,
    tpu:
      config.override_tpu === null
        ? environment.tpu
        : { ...config.override_tpu, chips: chipsOf(config.override_tpu.topology) },
  };
}

function chipsOf(topology: string): number {
  return topology.split('x').reduce((product, part) => product * Number(part), 1);
}
