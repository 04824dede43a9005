/**
 * `result.json` of a job folder, as Harbor writes it and its viewers read it. Harbor's own fields keep Harbor's meaning (a trial
 * without rewards counts 0 in `metrics`, a missing verdict is a failure in `pass_at_k`); what Slipway counts apart stands under `slipway`.
 */
import { z } from 'zod';
import { laxInteger, laxNumber, nullable } from './lax.ts';

const count = laxInteger.default(0);
/** Values may be anything that a metric script printed. */
const metricValues = z.array(z.record(z.string(), z.unknown()));
const numbers = z.record(z.string(), laxNumber);

/** Counted without what says nothing about the agent. */
export const evalCoverageSchema = z.object({
  /** Trials that the numbers below are about: those with a verdict, and those whose agent failed (these count 0). */
  n_counted: count,
  /** Trials without a verdict whose agent was not to blame: infrastructure, task, verifier, cancelled. Never part of an average. */
  n_uncounted: count,
  /** Of `n_uncounted`, those that the machine is to blame for. */
  n_infrastructure_failures: count,
  metrics: metricValues.default([]),
  pass_at_k: numbers.default({}),
  /** Trial names by error code. */
  failures: z.record(z.string(), z.array(z.string())).default({}),
});
export type EvalCoverage = z.output<typeof evalCoverageSchema>;

export const evalStatsSchema = z.object({
  /** Trials with rewards. */
  n_trials: count,
  n_errors: count,
  metrics: metricValues.default([]),
  pass_at_k: numbers.default({}),
  /** Channel → value → trial names. */
  reward_stats: z.record(z.string(), z.record(z.string(), z.array(z.string()))).default({}),
  /** Exception type → trial names. */
  exception_stats: z.record(z.string(), z.array(z.string())).default({}),
  slipway: nullable(evalCoverageSchema),
});
export type EvalStats = z.output<typeof evalStatsSchema>;

/** Harbor's older names. */
function liftLegacyCounts(value: unknown): unknown {
  if (typeof value !== 'object' || value === null) return value;
  const { n_trials, n_errors, ...rest } = value as Record<string, unknown>;
  return {
    ...(n_trials === undefined ? {} : { n_completed_trials: n_trials }),
    ...(n_errors === undefined ? {} : { n_errored_trials: n_errors }),
    ...rest,
  };
}

export const jobStatsSchema = z.preprocess(
  liftLegacyCounts,
  z.object({
    /** Errored ones included. */
    n_completed_trials: count,
    n_errored_trials: count,
    n_running_trials: count,
    n_pending_trials: count,
    n_cancelled_trials: count,
    n_retries: count,
    evals: z.record(z.string(), evalStatsSchema).default({}),
    n_input_tokens: nullable(laxInteger),
    n_cache_tokens: nullable(laxInteger),
    n_output_tokens: nullable(laxInteger),
    cost_usd: nullable(laxNumber),
  }),
);

export const jobResultSchema = z.object({
  id: z.string(),
  /** Local time without zone, as Harbor writes it. */
  started_at: nullable(z.string()),
  updated_at: nullable(z.string()),
  /** null until done; stays null after a crash. */
  finished_at: nullable(z.string()),
  n_total_trials: count,
  stats: jobStatsSchema.prefault({}),
});
export type JobResult = z.output<typeof jobResultSchema>;
