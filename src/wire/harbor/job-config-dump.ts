import {
  dumpAgentConfig,
  dumpEnvironmentConfig,
  dumpTaskEntry,
  dumpVerifierConfig,
  withoutDefaults,
} from './dump.ts';
import type { DatasetEntry } from './dataset-entry.ts';
import { jobConfigSchema, type JobConfig } from './job-config.ts';
import { agentConfigSchema } from './run-config.ts';
import { withoutUserinfo, type HostVariables } from './sensitive.ts';

/** The whole configuration, secrets masked. */
export function dumpJobConfig(config: JobConfig, host: HostVariables): Record<string, unknown> {
  return {
    ...config,
    agents: config.agents.map((agent) => dumpAgentConfig(agent, host)),
    environment: dumpEnvironmentConfig(config.environment, host),
    verifier: dumpVerifierConfig(config.verifier, host),
    tasks: config.tasks.map(dumpTaskEntry),
    datasets: config.datasets.map(dumpDatasetEntry),
  };
}

/** Without the credentials that its addresses may hold. */
function dumpDatasetEntry(dataset: DatasetEntry): DatasetEntry {
  const { repo, registry_url } = dataset;
  return {
    ...dataset,
    repo: repo === null ? null : withoutUserinfo(repo),
    registry_url: registry_url === null ? null : withoutUserinfo(registry_url),
  };
}

/** `config.json` of a job: only what differs from the defaults. Reading it back gives the same job. */
export function dumpNonDefaultJobConfig(
  config: JobConfig,
  host: HostVariables,
): Record<string, unknown> {
  const full = dumpJobConfig(config, host);
  const defaults = jobConfigSchema.parse({});
  const agentDefaults = { ...agentConfigSchema.parse({}), name: null };
  const agents = config.agents.map((agent) =>
    withoutDefaults(dumpAgentConfig(agent, host), agentDefaults),
  );
  return {
    ...withoutDefaults(
      { ...full, agents: null, datasets: null, tasks: null },
      {
        ...defaults,
        environment: { ...defaults.environment, type: null },
        agents: null,
        datasets: null,
        tasks: null,
      },
    ),
    agents,
    ...(config.datasets.length > 0 && {
      datasets: config.datasets.map(dumpDatasetEntry).map(withoutAbsent),
    }),
    ...(config.tasks.length > 0 && { tasks: config.tasks.map(dumpTaskEntry).map(withoutAbsent) }),
  };
}

/** An entry without nulls and without `overwrite: false`, its only other default. */
function withoutAbsent(entry: Readonly<Record<string, unknown>>): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(entry).filter(
      ([key, value]) => value !== null && !(key === 'overwrite' && value === false),
    ),
  );
}
