/** Writing Harbor's documents: 4-space JSON, secrets masked, defaults left out where Harbor leaves them out. */
import { isDeepStrictEqual } from 'node:util';
import { exactJson } from '../../core/exact-json.ts';
import {
  agentConfigSchema,
  environmentConfigSchema,
  ownImportPrefix,
  verifierConfigSchema,
  type AgentConfig,
  type EnvironmentConfig,
  type VerifierConfig,
} from './run-config.ts';
import { maskOptions, maskVariables, withoutUserinfo, type HostVariables } from './sensitive.ts';
import type { TaskEntry } from './task-entry.ts';
import { trialConfigSchema, type TrialConfig } from './trial-config.ts';

/** Names that Harbor's `environment.type` knows; others are written as an import path. */
const harborEnvironments = new Set(
  (
    'docker daytona e2b modal runloop langsmith ec2 gke ack openshift novita singularity islo tensorlake cwsandbox wandb ' +
    'use-computer cua-cloud blaxel opensandbox beam skypilot hf-sandbox hyperbrowser vercel apple-container'
  ).split(' '),
);

export function toHarborJson(document: unknown): string {
  return `${exactJson(document, 4)}\n`;
}

/** ISO 8601, UTC, with microseconds and `Z`, as Harbor writes the times of a trial. */
export function toHarborTime(time: Date): string {
  return time.toISOString().replace('Z', '000Z');
}

export function dumpAgentConfig(agent: AgentConfig, host: HostVariables): Record<string, unknown> {
  const { include_logs, exclude_logs, env, ...rest } = agent;
  return {
    ...rest,
    kwargs: maskOptions(rest.kwargs),
    skills: rest.skills.map(withoutUserinfo),
    ...(include_logs.length > 0 && { include_logs }),
    ...(exclude_logs.length > 0 && { exclude_logs }),
    ...(Object.keys(env).length > 0 && { env: maskVariables(env, host) }),
  };
}

export function dumpEnvironmentConfig(
  environment: EnvironmentConfig,
  host: HostVariables,
): Record<string, unknown> {
  const isForeign = environment.type !== null && !harborEnvironments.has(environment.type);
  return {
    ...environment,
    ...(isForeign && { type: null, import_path: `${ownImportPrefix}${environment.type}` }),
    env: maskVariables(environment.env, host),
  };
}

export function dumpVerifierConfig(
  verifier: VerifierConfig,
  host: HostVariables,
): Record<string, unknown> {
  return { ...verifier, env: maskVariables(verifier.env, host) };
}

/** Without the credentials that an address may hold. */
export function dumpTaskEntry(task: TaskEntry): TaskEntry {
  return task.git_url === null ? task : { ...task, git_url: withoutUserinfo(task.git_url) };
}

/** The whole configuration, defaults included, secrets masked. Reading it back gives the same trial. */
export function dumpTrialConfig(
  config: TrialConfig,
  host: HostVariables,
): Record<string, unknown> & { readonly task: TrialConfig['task'] } {
  return {
    ...config,
    task: dumpTaskEntry(config.task),
    agent: dumpAgentConfig(config.agent, host),
    environment: dumpEnvironmentConfig(config.environment, host),
    verifier: dumpVerifierConfig(config.verifier, host),
  };
}

/** `config.json` of a trial: only what differs from the defaults. */
export function dumpNonDefaultTrialConfig(
  config: TrialConfig,
  host: HostVariables,
): Record<string, unknown> {
  const defaults = {
    ...trialConfigSchema.parse({ task: { path: '.' } }),
    task: { ...trialConfigSchema.parse({ task: { path: '.' } }).task, path: null },
    agent: { ...agentConfigSchema.parse({}), name: null },
    environment: { ...environmentConfigSchema.parse({}), type: null },
    verifier: verifierConfigSchema.parse({}),
  };
  return withoutDefaults(dumpTrialConfig(config, host), defaults);
}

export function withoutDefaults(
  fields: Readonly<Record<string, unknown>>,
  defaults: Readonly<Record<string, unknown>>,
): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(fields).flatMap(([name, value]) => {
      const usual = defaults[name];
      if (isDeepStrictEqual(value, usual)) return [];
      if (!isPlainObject(value) || !isPlainObject(usual)) return [[name, value]];
      const rest = withoutDefaults(value, usual);
      return Object.keys(rest).length === 0 ? [] : [[name, rest]];
    }),
  );
}

function isPlainObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
