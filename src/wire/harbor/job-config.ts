import { z } from 'zod';
import { datasetEntrySchema } from './dataset-entry.ts';
import { laxBoolean, laxInteger, laxNumber, nullable } from './lax.ts';
import {
  agentConfigSchema,
  artifactEntrySchema,
  environmentConfigSchema,
  timeoutMultiplierFields,
  verifierConfigSchema,
} from './run-config.ts';
import { taskEntrySchema } from './task-entry.ts';

/** Exception types that Harbor does not try again unless told otherwise. */
export const defaultRetryExcludes = [
  'AgentTimeoutError',
  'VerifierTimeoutError',
  'RewardFileNotFoundError',
  'RewardFileEmptyError',
  'VerifierOutputParseError',
  'ApiUsageLimitError',
  'AgentSafetyRefusalError',
  'AgentAuthenticationError',
  'ModelNotFoundError',
] as const;

export const retryConfigSchema = z.object({
  max_retries: laxInteger.pipe(z.int().min(0)).default(0),
  include_exceptions: nullable(z.array(z.string())),
  exclude_exceptions: z
    .array(z.string())
    .nullish()
    .transform((types) => types ?? [...defaultRetryExcludes]),
  wait_multiplier: laxNumber.pipe(z.number().min(0)).default(1),
  min_wait_sec: laxNumber.pipe(z.number().min(0)).default(1),
  max_wait_sec: laxNumber.pipe(z.number().min(0)).default(60),
});

export const metricConfigSchema = z.object({
  type: z.enum(['mean', 'sum', 'min', 'max', 'uv-script']).default('mean'),
  kwargs: z.record(z.string(), z.unknown()).default({}),
});
export type MetricConfig = z.output<typeof metricConfigSchema>;

/** Harbor's older spelling: `orchestrator: {n_concurrent_trials, quiet, retry}`. */
function liftOrchestrator(value: unknown): unknown {
  if (typeof value !== 'object' || value === null || !('orchestrator' in value)) return value;
  const { orchestrator, ...rest } = value;
  if (typeof orchestrator !== 'object' || orchestrator === null) return rest;
  const { n_concurrent_trials, quiet, retry } = orchestrator as Record<string, unknown>;
  const lifted = Object.entries({ n_concurrent_trials, quiet, retry });
  return { ...Object.fromEntries(lifted.filter(([, field]) => field !== undefined)), ...rest };
}

/** `config.json` of a job folder, and what a job file may hold. Unknown keys are dropped, as Harbor drops them. */
export const jobConfigSchema = z.preprocess(
  liftOrchestrator,
  z
    .object({
      /** Empty = made from the local time. */
      job_name: z
        .string()
        .regex(/^[^/\\\0]*$/, 'must be one folder name')
        .refine((name) => name !== '.' && name !== '..', 'must be one folder name')
        .default(''),
      jobs_dir: z.string().min(1).default('jobs'),
      n_attempts: laxInteger.pipe(z.int().min(1)).default(1),
      install_only: laxBoolean.default(false),
      ...timeoutMultiplierFields,
      debug: laxBoolean.default(false),
      n_concurrent_trials: laxInteger.pipe(z.int().min(1)).default(4),
      quiet: laxBoolean.default(false),
      retry: retryConfigSchema.prefault({}),
      environment: environmentConfigSchema.prefault({}),
      verifier: verifierConfigSchema.prefault({}),
      metrics: z.array(metricConfigSchema).default([]),
      agents: z.array(agentConfigSchema).default([]),
      datasets: z.array(datasetEntrySchema).default([]),
      tasks: z.array(taskEntrySchema).default([]),
      artifacts: z.array(artifactEntrySchema).default([]),
      extra_instruction_paths: z.array(z.string()).default([]),
      extra_instructions: z.array(z.string()).default([]),
    })
    .transform((job) => ({
      ...job,
      agents: job.agents.length === 0 ? [agentConfigSchema.parse({})] : job.agents,
    }))
    .check(({ value, issues }) => {
      value.agents.forEach((agent, index) => {
        if ((agent.n_concurrent ?? 0) > value.n_concurrent_trials)
          issues.push({
            code: 'custom',
            input: agent.n_concurrent,
            path: ['agents', index, 'n_concurrent'],
            message: `must not exceed n_concurrent_trials (${value.n_concurrent_trials})`,
          });
      });
    }),
);

export type JobConfig = Readonly<z.output<typeof jobConfigSchema>>;
