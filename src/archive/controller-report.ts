/**
 * What a controller said of its model calls in an acknowledgement, laid over a trajectory. A list of calls is applied only where there are as many
 * as steps of the agent, and a sample only where there is one: what cannot be attributed is kept beside the steps, never guessed.
 */
import { z } from 'zod';
import { controllerReportSchema, type ControllerReport } from '../wire/rollout/acknowledgement.ts';
import type { AtifFinalMetrics, AtifMetrics, AtifStep, AtifTrajectory } from '../wire/atif/atif.ts';

type ReportedCall = NonNullable<ControllerReport['samples'][string]>['llm_call_metrics'][number];

const tokens = z.int().min(0).nullish();
const finalSchema = z.object({
  total_prompt_tokens: tokens,
  total_completion_tokens: tokens,
  total_cached_tokens: tokens,
  total_cost_usd: z.number().nullish(),
});

export interface ReportedTrajectory {
  readonly trajectory: AtifTrajectory;
  /** For `extra.osmosis`. */
  readonly unmatched: Readonly<Record<string, unknown>>;
  readonly warnings: readonly string[];
}

export function withReport(document: AtifTrajectory, report: unknown): ReportedTrajectory {
  const nothing = { trajectory: withTotals(document, {}), unmatched: {}, warnings: [] };
  if (report === null || report === undefined) return nothing;
  const parsed = controllerReportSchema.safeParse(report);
  if (!parsed.success) return { ...nothing, warnings: ['the report of the controller is none'] };
  const entries = Object.entries(parsed.data.samples);
  const [only] = entries;
  if (entries.length > 1)
    return {
      ...nothing,
      unmatched: { unmatched_sample_reports: parsed.data.samples },
      warnings: [`the controller reports on ${entries.length} samples of one`],
    };
  const sample = only?.[1] ?? null;
  const calls = sample?.llm_call_metrics ?? [];
  const agents = document.steps.filter(({ source }) => source === 'agent').length;
  const isMatched = calls.length === agents;
  const model = sample?.model_name ?? parsed.data.model_name ?? null;
  const finals = finalSchema.safeParse(sample?.final_metrics ?? {});
  const trajectory = {
    ...document,
    agent: { ...document.agent, ...(model !== null && { model_name: model }) },
    ...(isMatched && { steps: withCalls(document.steps, calls) }),
  };
  const hasFinals = finals.success && sample?.final_metrics != null;
  return {
    trajectory: withTotals(trajectory, hasFinals ? withoutNulls(finals.data) : sums(calls)),
    unmatched: isMatched || calls.length === 0 ? {} : { unmatched_llm_call_metrics: calls },
    warnings: finals.success ? [] : ['the totals that the controller reports are none'],
  };
}

function withCalls(
  steps: readonly AtifStep[],
  calls: readonly ReportedCall[],
): readonly AtifStep[] {
  const next = calls.values();
  return steps.map((step) => {
    if (step.source !== 'agent') return step;
    const { model_name: model, ...reported } = next.next().value ?? {};
    const metrics = withMetrics(step.metrics ?? {}, withoutNulls(reported));
    return {
      ...step,
      ...(model != null && { model_name: model }),
      ...((step.metrics != null || Object.keys(metrics).length > 0) && { metrics }),
      llm_call_count: 1,
    };
  });
}

/** Field by field: neither a report of counts alone nor one of empty lists erases token ids. */
function withMetrics(own: AtifMetrics, reported: AtifMetrics): AtifMetrics {
  const said = Object.entries(reported).filter(
    ([field, value]) =>
      !Array.isArray(value) || value.length > 0 || own[field as keyof AtifMetrics] == null,
  );
  const extra = reported.extra == null ? own.extra : { ...own.extra, ...reported.extra };
  return { ...own, ...Object.fromEntries(said), ...(extra != null && { extra }) };
}

function sums(calls: readonly ReportedCall[]): AtifFinalMetrics {
  const sum = (field: 'prompt_tokens' | 'completion_tokens' | 'cached_tokens' | 'cost_usd') => {
    const known = calls.map((call) => call[field]).filter((value) => value != null);
    return known.length === 0 ? null : known.reduce((total, value) => total + value, 0);
  };
  return withoutNulls({
    total_prompt_tokens: sum('prompt_tokens'),
    total_completion_tokens: sum('completion_tokens'),
    total_cached_tokens: sum('cached_tokens'),
    total_cost_usd: sum('cost_usd'),
  });
}

function withTotals(document: AtifTrajectory, totals: AtifFinalMetrics): AtifTrajectory {
  const final = { ...document.final_metrics, ...totals, total_steps: document.steps.length };
  return { ...document, final_metrics: withoutNulls(final) };
}

function withoutNulls<T extends object>(value: T): { [Key in keyof T]?: NonNullable<T[Key]> } {
  return Object.fromEntries(
    Object.entries(value).filter(([, part]) => part !== null && part !== undefined),
  ) as { [Key in keyof T]?: NonNullable<T[Key]> };
}
