import { z } from 'zod';
import { laxInteger, laxNumber, nullable } from './lax.ts';
import { slipwayRecordSchema } from './slipway-record.ts';
import { trialConfigSchema } from './trial-config.ts';

export const timingSchema = z.object({
  started_at: nullable(z.string()),
  finished_at: nullable(z.string()),
});
export type TimingInfo = z.output<typeof timingSchema>;

export const exceptionInfoSchema = z.object({
  /** Class name of the failure in Harbor's vocabulary; retry filters match it. */
  exception_type: z.string(),
  exception_message: z.string().default(''),
  exception_traceback: z.string().default(''),
  occurred_at: nullable(z.string()),
});
export type ExceptionInfo = z.output<typeof exceptionInfoSchema>;

/** What an agent reported about its own run; every field null = it reported nothing. */
export const agentResultSchema = z.object({
  /** Includes cached tokens. */
  n_input_tokens: nullable(laxInteger),
  n_cache_tokens: nullable(laxInteger),
  n_output_tokens: nullable(laxInteger),
  cost_usd: nullable(laxNumber),
  rollout_details: nullable(z.array(z.unknown())),
  metadata: nullable(z.record(z.string(), z.unknown())),
});
export type AgentResult = z.output<typeof agentResultSchema>;

export const emptyAgentResult: AgentResult = Object.freeze({
  n_input_tokens: null,
  n_cache_tokens: null,
  n_output_tokens: null,
  cost_usd: null,
  rollout_details: null,
  metadata: null,
});

/** Harbor writes a NaN reward as null; such a channel has no number and is left out. */
const rewardsSchema = z
  .record(z.string(), nullable(laxNumber))
  .transform((rewards) =>
    Object.fromEntries(
      Object.entries(rewards).filter((entry): entry is [string, number] => entry[1] !== null),
    ),
  );

export const verifierResultSchema = z.object({ rewards: nullable(rewardsSchema) });
export type VerifierResult = z.output<typeof verifierResultSchema>;

export const agentInfoSchema = z.object({
  name: z.string(),
  version: z.string().default('unknown'),
  model_info: nullable(z.object({ name: z.string(), provider: nullable(z.string()) })),
});
export type AgentInfo = z.output<typeof agentInfoSchema>;

/** Local `{path}`, git `{git_url, git_commit_id, path}` or package `{org, name, ref}`. */
export const taskIdSchema = z.union([
  z.object({ org: z.string(), name: z.string(), ref: nullable(z.string()) }),
  z.object({ git_url: z.string(), git_commit_id: nullable(z.string()), path: z.string() }),
  z.object({ path: z.string() }),
]);
export type TaskId = z.output<typeof taskIdSchema>;

export const stepResultSchema = z.object({
  step_name: z.string(),
  agent_result: nullable(agentResultSchema),
  verifier_result: nullable(verifierResultSchema),
  exception_info: nullable(exceptionInfoSchema),
  agent_execution: nullable(timingSchema),
  verifier: nullable(timingSchema),
});
export type StepResult = z.output<typeof stepResultSchema>;

/** `result.json` of a trial folder, as Harbor 0.16 to 0.22 writes it; `slipway` is null in a file that Harbor wrote. */
export const trialResultSchema = z.object({
  id: z.string(),
  task_name: z.string(),
  trial_name: z.string(),
  trial_uri: z.string(),
  task_id: taskIdSchema,
  source: nullable(z.string()),
  task_checksum: z.string(),
  config: trialConfigSchema,
  agent_info: agentInfoSchema,
  agent_result: nullable(agentResultSchema),
  verifier_result: nullable(verifierResultSchema),
  verifier_environment_mode: nullable(z.enum(['shared', 'separate'])),
  exception_info: nullable(exceptionInfoSchema),
  started_at: nullable(z.string()),
  finished_at: nullable(z.string()),
  environment_setup: nullable(timingSchema),
  agent_setup: nullable(timingSchema),
  agent_execution: nullable(timingSchema),
  verifier: nullable(timingSchema),
  step_results: nullable(z.array(stepResultSchema)),
  slipway: nullable(slipwayRecordSchema),
});
export type TrialResult = z.output<typeof trialResultSchema>;
