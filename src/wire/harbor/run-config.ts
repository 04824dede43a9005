/** The sections that a trial and a job configuration of Harbor share: agent, environment, verifier, artifacts. */
import { z } from 'zod';
import { laxBoolean, laxInteger, laxNumber, nullable } from './lax.ts';
import { artifactEntry } from './task/artifact-entry.ts';
import { mcpServerTable } from './task/mcp-server.ts';

const strings = z.array(z.string()).default([]);
const kwargs = z.record(z.string(), z.unknown()).default({});

/** A map, or the legacy list of `KEY=VALUE`. */
const variables = z
  .preprocess(
    (value) => {
      if (!Array.isArray(value)) return value ?? {};
      return Object.fromEntries(
        value.map((entry) => {
          const [key = '', ...rest] = String(entry).split('=');
          return [key.trim(), rest.join('=').trim()];
        }),
      );
    },
    z.record(z.string(), z.string()),
  )
  .default({});

export const mcpServerEntrySchema = mcpServerTable;
export type McpServerEntry = Readonly<z.output<typeof mcpServerEntrySchema>>;

export const artifactEntrySchema = artifactEntry;
export type ArtifactEntry = Readonly<z.output<typeof artifactEntrySchema>>;

export const agentConfigSchema = z
  .object({
    name: nullable(z.string()),
    import_path: nullable(z.string()),
    model_name: nullable(z.string()),
    n_concurrent: nullable(laxInteger.pipe(z.int().min(1))),
    concurrency_group: nullable(z.string()),
    skills: strings,
    override_timeout_sec: nullable(laxNumber),
    override_setup_timeout_sec: nullable(laxNumber),
    max_timeout_sec: nullable(laxNumber),
    resume_trajectory: laxBoolean.default(false),
    load_trajectory: nullable(z.string()),
    extra_allowed_hosts: strings,
    include_logs: strings,
    exclude_logs: strings,
    kwargs,
    /** Values may be templates; secrets are masked when written. */
    env: variables,
    mcp_servers: z.array(mcpServerEntrySchema).default([]),
  })
  .transform((agent) => ({
    ...agent,
    name: agent.name ?? (agent.import_path === null ? 'oracle' : null),
  }))
  .check(({ value, issues }) => {
    if (value.concurrency_group !== null && value.n_concurrent === null)
      issues.push({
        code: 'custom',
        input: value,
        path: ['concurrency_group'],
        message: 'concurrency_group needs n_concurrent',
      });
  });
export type AgentConfig = z.output<typeof agentConfigSchema>;

export const resourcePolicies = ['auto', 'limit', 'request', 'guarantee', 'ignore'] as const;
export type ResourcePolicy = (typeof resourcePolicies)[number];
const resourcePolicy = z
  .preprocess(
    (value) => (typeof value === 'string' ? value.toLowerCase() : value),
    z.enum(resourcePolicies),
  )
  .default('auto');

/** An environment of ours that Harbor does not know is written as an import path, so that Harbor still reads the file. */
export const ownImportPrefix = 'slipway:';

const volumes = z
  .array(z.record(z.string(), z.unknown()))
  .nullish()
  .transform((list) => list ?? []);

export const environmentConfigSchema = z
  .object({
    /** Name of the environment, `docker` unless `import_path` is given. */
    type: nullable(z.string()),
    import_path: nullable(z.string()),
    force_build: laxBoolean.default(false),
    delete: laxBoolean.default(true),
    cpu_enforcement_policy: resourcePolicy,
    memory_enforcement_policy: resourcePolicy,
    override_cpus: nullable(laxInteger),
    override_memory_mb: nullable(laxInteger),
    override_storage_mb: nullable(laxInteger),
    override_gpus: nullable(laxInteger),
    override_tpu: nullable(z.object({ type: z.string(), topology: z.string() })),
    /** Volumes in compose's long form. */
    mounts: volumes,
    /** Older spelling of `mounts`. */
    mounts_json: volumes,
    extra_docker_compose: strings,
    /** Literal: never resolved as templates. */
    env: variables,
    kwargs,
    extra_allowed_hosts: strings,
  })
  .transform(({ mounts_json, ...current }) => {
    const environment = {
      ...current,
      mounts: current.mounts.length > 0 ? current.mounts : mounts_json,
    };
    if (environment.import_path?.startsWith(ownImportPrefix) === true)
      return {
        ...environment,
        type: environment.import_path.slice(ownImportPrefix.length),
        import_path: null,
      };
    return {
      ...environment,
      type: environment.type ?? (environment.import_path === null ? 'docker' : null),
    };
  });
export type EnvironmentConfig = z.output<typeof environmentConfigSchema>;

export const verifierConfigSchema = z.object({
  override_timeout_sec: nullable(laxNumber),
  max_timeout_sec: nullable(laxNumber),
  include_logs: strings,
  exclude_logs: strings,
  /** Values may be templates; secrets are masked when written. */
  env: variables,
  import_path: nullable(z.string()),
  kwargs,
  disable: laxBoolean.default(false),
});
export type VerifierConfig = z.output<typeof verifierConfigSchema>;

/** Fields of a trial and a job that scale the limits of the phases. A phase's own multiplier replaces the general one. */
export const timeoutMultiplierFields = {
  timeout_multiplier: laxNumber.default(1),
  agent_timeout_multiplier: nullable(laxNumber),
  verifier_timeout_multiplier: nullable(laxNumber),
  agent_setup_timeout_multiplier: nullable(laxNumber),
  environment_build_timeout_multiplier: nullable(laxNumber),
};
