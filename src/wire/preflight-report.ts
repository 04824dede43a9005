/** The document of `slipway preflight --json`. */
import { z } from 'zod';

/** In the order in which they are made. */
export const preflightChecks = [
  'configuration',
  'data-folder',
  'store',
  'keys',
  'listeners',
  'backend',
  'grader',
  'engine',
  'telemetry',
  'callbacks',
  'model',
  'tasks',
  'sandbox',
  'workflow',
  'gateway',
] as const;
export type PreflightCheckName = (typeof preflightChecks)[number];

export const preflightStatuses = ['ok', 'warning', 'failed', 'skipped'] as const;
export type PreflightStatus = (typeof preflightStatuses)[number];

export const preflightResultSchema = z.strictObject({
  name: z.enum(preflightChecks),
  /** What it was made on, where there are several: a task, a URL. */
  subject: z.string().nullable(),
  status: z.enum(preflightStatuses),
  summary: z.string(),
  /** Of the error registry; null for what is no error. */
  code: z.string().nullable(),
  field: z.string().nullable(),
  remedy: z.string().nullable(),
  /** More lines, such as every problem of a configuration. */
  detail: z.string().nullable(),
  duration_ms: z.int().nonnegative(),
});
export type PreflightResult = z.infer<typeof preflightResultSchema>;

export const preflightReportSchema = z.strictObject({
  schema_version: z.literal(1),
  /** Nothing failed. */
  ok: z.boolean(),
  counts: z.strictObject({
    ok: z.int().nonnegative(),
    warning: z.int().nonnegative(),
    failed: z.int().nonnegative(),
    skipped: z.int().nonnegative(),
  }),
  duration_ms: z.int().nonnegative(),
  checks: z.array(preflightResultSchema),
});
export type PreflightReport = z.infer<typeof preflightReportSchema>;
