/**
 * What Slipway adds to Harbor's `result.json`, all under the one key `slipway`, which Harbor's readers ignore: the typed outcome,
 * where the time went (booting apart from the agent), and what was confirmed gone.
 */
import { z } from 'zod';
import { errorRegistry, type ErrorCode } from '../../core/error-registry.ts';
import type { Phase } from '../../core/errors.ts';
import type { Outcome } from '../outcome.ts';

const phases = [
  'config',
  'resolve',
  'queue',
  'environment',
  'agent-setup',
  'agent',
  'model-call',
  'agent-stop',
  'collect',
  'verifier',
  'cleanup',
  'callback',
  'server',
] as const satisfies readonly Phase[];

const codes = Object.keys(errorRegistry) as [ErrorCode, ...ErrorCode[]];
const errorCodeSchema = z.enum(codes);

export const outcomeSchema: z.ZodType<Outcome> = z.object({
  stage: z.enum([...phases, 'done']),
  cause: errorCodeSchema.nullable(),
  trainable: z.boolean(),
  retryable: z.boolean(),
  verdict: z.object({ rewards: z.record(z.string(), z.number()) }).nullable(),
});

/** A failure as a reader needs it; `message` never holds a secret. */
export const failureSchema = z.object({
  code: errorCodeSchema,
  phase: z.enum(phases),
  message: z.string(),
  field: z.string().nullable(),
  remedy: z.string().nullable(),
  detail: z.string().nullable(),
  retryable: z.boolean(),
});
export type Failure = z.output<typeof failureSchema>;

/** Milliseconds spent per part of the trial; a part that did not run is absent. */
export const phaseTimesSchema = z.object({
  /** Waiting for a place among the concurrent trials and agents. Never part of the agent's time. */
  queue_ms: z.number().optional(),
  /** Loading the task and planning the trial. */
  resolve_ms: z.number().optional(),
  /** Pull, build or unpack the image. */
  image_ms: z.number().optional(),
  /** From "image ready" to "exec works". */
  boot_ms: z.number().optional(),
  healthcheck_ms: z.number().optional(),
  skills_ms: z.number().optional(),
  agent_setup_ms: z.number().optional(),
  /** Files and setup scripts of the steps. */
  step_setup_ms: z.number().optional(),
  agent_ms: z.number().optional(),
  agent_stop_ms: z.number().optional(),
  collect_ms: z.number().optional(),
  verifier_ms: z.number().optional(),
  cleanup_ms: z.number().optional(),
  total_ms: z.number().optional(),
});
export type PhaseTimes = z.output<typeof phaseTimesSchema>;

/** What cancelling did: `killed` processes, what was looked for and found absent, within how long. */
export const cancellationSchema = z.object({
  /** Where the trial was when the cancellation arrived. */
  phase: z.enum(phases),
  killed: z.number().int(),
  confirmed_gone: z.array(z.string()),
  /** False when something could not be confirmed gone; `problem` says what. */
  is_complete: z.boolean(),
  problem: z.string().nullable(),
  duration_ms: z.number(),
});
export type CancellationReceipt = z.output<typeof cancellationSchema>;

const killReceiptSchema = z.object({
  killed: z.number().int(),
  confirmed_by: z.array(z.string()),
  duration_ms: z.number(),
});
export type KillRecord = z.output<typeof killReceiptSchema>;

const stepRecordSchema = z.object({
  name: z.string(),
  outcome: outcomeSchema,
  failure: failureSchema.nullable(),
  agent_stop: killReceiptSchema.nullable(),
  verifier_exit_code: z.number().int().nullable(),
});
export type StepRecord = z.output<typeof stepRecordSchema>;

export const slipwayRecordSchema = z.object({
  schema_version: z.literal(1),
  outcome: outcomeSchema,
  failure: failureSchema.nullable(),
  environment: z
    .object({ kind: z.string(), isolation: z.string(), sandbox: z.string() })
    .nullable(),
  phase_times: phaseTimesSchema,
  agent_stop: killReceiptSchema.nullable(),
  /** Harbor ignores the exit status of the test script; so do rewards here, but it is kept. */
  verifier_exit_code: z.number().int().nullable(),
  cancellation: cancellationSchema.nullable(),
  /** Kinds of things confirmed gone when the environment was destroyed; null when it was kept or never made. */
  destroyed: z.array(z.string()).nullable(),
  steps: z.array(stepRecordSchema),
  warnings: z.array(z.string()),
});
export type SlipwayRecord = z.output<typeof slipwayRecordSchema>;
