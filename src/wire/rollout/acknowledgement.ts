/** What a controller answers to a callback: anything, and perhaps a report about the model calls that it served. */
import { z } from 'zod';

const count = z.number().int();

/** One model call, with the names of ATIF's metrics. */
const callSchema = z.object({
  prompt_tokens: count.nullish(),
  completion_tokens: count.nullish(),
  cached_tokens: count.nullish(),
  cost_usd: z.number().nullish(),
  prompt_token_ids: z.array(count).nullish(),
  completion_token_ids: z.array(count).nullish(),
  logprobs: z.array(z.number()).nullish(),
  model_name: z.string().nullish(),
  extra: z.record(z.string(), z.unknown()).nullish(),
});

/** Unknown keys are ignored at every level. */
export const controllerReportSchema = z.object({
  model_name: z.string().nullish(),
  samples: z
    .record(
      z.string(),
      z.object({
        model_name: z.string().nullish(),
        /** In the order in which the calls were made. */
        llm_call_metrics: z.array(callSchema).default([]),
        final_metrics: z.record(z.string(), z.unknown()).nullish(),
      }),
    )
    .default({}),
});

export type ControllerReport = z.output<typeof controllerReportSchema>;

export interface Acknowledgement {
  readonly report: ControllerReport | null;
  /** Why what looked like a report is none; null = there is nothing to say. */
  readonly warning: string | null;
}

/** Reads the body of a 2xx answer. Whatever it is, the callback was delivered. */
export function readAcknowledgement(text: string): Acknowledgement {
  const body = parsed(text);
  if (typeof body !== 'object' || body === null || !('trajectory' in body)) return nothing;
  if (body.trajectory === null) return nothing;
  const report = controllerReportSchema.safeParse(body.trajectory);
  if (report.success) return { report: report.data, warning: null };
  const [problem] = report.error.issues;
  const place = ['trajectory', ...(problem?.path ?? [])].join('.');
  return { report: null, warning: `${place}: ${problem?.message ?? 'not a report'}` };
}

const nothing: Acknowledgement = { report: null, warning: null };

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}
