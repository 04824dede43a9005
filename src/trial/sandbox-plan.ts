/** One sandbox of a trial: what it is made of, checked against what the environment can do. */
import { stat } from 'node:fs/promises';
import { RolloutError } from '../core/errors.ts';
import type {
  EnvironmentProvider,
  ImageSource,
  ResourceLimits,
} from '../environments/environment.ts';
import { resolveEnvironmentDefinition } from '../tasks/environment-definition.ts';
import { resolveTemplates } from '../tasks/environment-templates.ts';
import type { TaskEnvironment } from '../tasks/task.ts';
import type { HostVariables } from '../wire/harbor/sensitive.ts';
import type { TrialConfig } from '../wire/harbor/trial-config.ts';
import type { NetworkPolicy } from '../wire/network-policy.ts';
import {
  checkDevices,
  checkImage,
  checkLaterNetworks,
  checkNetwork,
  resolveLimits,
  withOverrides,
} from './capability-checks.ts';
import { absolutePath } from './home-path.ts';
import type { TrialInputs } from './trial-options.ts';

export interface PlanOptions {
  readonly config: TrialConfig;
  readonly inputs: TrialInputs;
  readonly provider: EnvironmentProvider;
  readonly hostVariables: HostVariables;
  readonly warn: (text: string) => void;
  readonly signal: AbortSignal;
}

/** A sandbox that the trial will start. */
export interface SandboxPlan {
  readonly image: ImageSource;
  readonly workdir: string | null;
  readonly env: Readonly<Record<string, string>>;
  readonly limits: ResourceLimits;
  readonly network: NetworkPolicy;
  readonly laterNetworks: readonly NetworkPolicy[];
  /** Host folder whose contents go into the working folder after start; null = none. */
  readonly uploadDir: string | null;
}

/** Which section of the task becomes a sandbox, and how. */
export interface SandboxQuery {
  readonly section: TaskEnvironment;
  readonly contextDir: string;
  readonly composeFiles: readonly string[];
  readonly forceBuild: boolean;
  /** Dotted path of the section, for messages. */
  readonly field: string;
  readonly network: NetworkPolicy;
  readonly later: readonly NetworkPolicy[];
}

/** CAPABILITY_UNSUPPORTED, VARIABLE_UNSET, TASK_ENVIRONMENT_UNDEFINED or CONFIG_INVALID; every later step can rely on the answer. */
export async function planSandbox(options: PlanOptions, query: SandboxQuery): Promise<SandboxPlan> {
  const { config, provider, hostVariables, warn, signal } = options;
  const section = withOverrides(query.section, config.environment);
  const taskEnv = resolveTemplates(section.env, hostVariables, `${query.field}.env`);
  const { image, uploadDir } = await resolveEnvironmentDefinition({
    contextDir: query.contextDir,
    dockerImage: section.dockerImage,
    forceBuild: query.forceBuild,
    extraComposeFiles: query.composeFiles,
    signal,
  });
  checkImage(provider, image);
  const limits = resolveLimits(provider, {
    wanted: section,
    config: config.environment,
    warn,
  });
  checkDevices(provider, section);
  checkNetwork(provider, query.network, `${query.field}.network_mode`);
  checkLaterNetworks(provider, query.later, 'network_mode');
  return {
    image,
    workdir: section.workdir,
    env: { ...taskEnv, ...config.environment.env },
    limits,
    network: query.network,
    laterNetworks: query.later,
    uploadDir,
  };
}

/** The compose files of the run, absolute. CONFIG_INVALID when one is not there. */
export async function composeFiles(config: TrialConfig): Promise<readonly string[]> {
  const files: string[] = [];
  for (const text of config.environment.extra_docker_compose) {
    const file = absolutePath(text);
    if ((await stat(file).catch(() => null))?.isFile() !== true)
      throw new RolloutError('CONFIG_INVALID', `there is no compose file ${text}`, {
        phase: 'config',
        field: 'environment.extra_docker_compose',
        remedy: 'Give the path of an existing file.',
      });
    files.push(file);
  }
  return files;
}
