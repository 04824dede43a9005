/**
 * Brings what a gateway has kept of model calls to the steps of a trajectory that somebody else wrote: the log of an agent's own program, in which there are
 * no token ids. A step and a call belong together when they name the same answer, or the same calls of tools, or say the same; only where the name is that
 * of one step and one call. Steps of which that cannot be said stay without ids: none are ever made of text.
 */
import type { AtifMetrics } from '../wire/atif/atif.ts';
import { redacted } from './redact.ts';
import type { NewStep } from './trajectory-log.ts';

/** A call of the model that came to its end. */
export interface SampledCall {
  /** What the ids of the answer are made of that the program got; null = it has none. */
  readonly answerId: string | null;
  /** As the engine gave it, with the ids in its `metrics` where it told them. */
  readonly answer: NewStep;
  /** All that the ids stand for. */
  readonly sampledText: string;
}

type Key = (step: NewStep, call: SampledCall | null) => string | null;

/** From the surest to the least sure. */
const keys: readonly Key[] = [answerKey, toolKey, textKey];

export interface WithTokenIds<Step> {
  readonly steps: readonly Step[];
  /** Whose ids a step has got, by its place in `steps`. */
  readonly callOf: ReadonlyMap<number, SampledCall>;
}

export function withTokenIds<Step extends NewStep>(
  steps: readonly Step[],
  calls: readonly SampledCall[],
): WithTokenIds<Step> {
  const callOf = new Map<number, SampledCall>();
  const open = new Set(steps.flatMap((step, at) => (isOpen(step) ? [at] : [])));
  const left = new Set(calls);
  for (const key of keys) {
    const stepsBy = Map.groupBy(open, (at) => keyOfStep(key, steps[at]));
    const callsBy = Map.groupBy(left, (call) => key(call.answer, call));
    for (const [name, [at, ...moreSteps]] of stepsBy) {
      const [call, ...moreCalls] = name === null ? [] : (callsBy.get(name) ?? []);
      if (at === undefined || call === undefined) continue;
      if (moreSteps.length > 0 || moreCalls.length > 0) continue;
      callOf.set(at, call);
      open.delete(at);
      left.delete(call);
    }
  }
  // A secret that was taken out of a step is in its ids still, and in the prompts of all later ones.
  const told = steps.findIndex((step) => JSON.stringify(step).includes(redacted));
  for (const [at, { answer }] of callOf) {
    const hasIds = answer.metrics?.completion_token_ids != null;
    if (!hasIds || (told >= 0 && at >= told)) callOf.delete(at);
  }
  return {
    callOf,
    steps: steps.map((step, at) => {
      const call = callOf.get(at);
      return call === undefined ? step : { ...step, metrics: joined(step, call) };
    }),
  };
}

export function lacksTokenIds(steps: readonly NewStep[]): boolean {
  return steps.some(isOpen);
}

function keyOfStep(key: Key, step: NewStep | undefined): string | null {
  return step === undefined ? null : key(step, null);
}

function isOpen({ source, llm_call_count: calls, metrics }: NewStep): boolean {
  return source === 'agent' && (calls ?? 1) === 1 && metrics?.completion_token_ids == null;
}

function joined({ metrics }: NewStep, { answer, answerId }: SampledCall): AtifMetrics {
  const { prompt_token_ids, completion_token_ids, logprobs, extra, ...counts } =
    answer.metrics ?? {};
  return {
    ...counts,
    ...metrics,
    ...(prompt_token_ids != null && { prompt_token_ids }),
    ...(completion_token_ids != null && { completion_token_ids }),
    ...(logprobs != null && { logprobs }),
    extra: { ...extra, ...(answerId !== null && { response_id: answerId }), ...metrics?.extra },
  };
}

/** A gateway that makes ids of its own puts the kind of thing before them: `resp_…`, `msg_…`. */
function answerKey({ metrics }: NewStep, call: SampledCall | null): string | null {
  if (call !== null) return call.answerId;
  return text(metrics?.extra?.['response_id'])?.replace(/^(?:resp|msg)_/, '') ?? null;
}

function toolKey({ tool_calls: made }: NewStep): string | null {
  const ids = (made ?? []).map((call) => call.tool_call_id);
  return ids.length === 0 || ids.includes('') ? null : JSON.stringify(ids.toSorted());
}

/** What calls no tool is told by all that it says. */
function textKey({ message, tool_calls: made }: NewStep): string | null {
  const said = typeof message === 'string' ? message.trim() : '';
  return said === '' || (made ?? []).length > 0 ? null : said;
}

function text(value: unknown): string | null {
  return typeof value === 'string' && value !== '' ? value : null;
}
