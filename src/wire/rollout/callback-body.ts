/**
 * The bytes of the two callbacks. They are made once per rollout and channel and never again: the same report gives the same text. An earned reward
 * always arrives: what of a sample JSON cannot carry is left out, and said in `losses`.
 */
import { exactJson } from '../../core/exact-json.ts';
import type { CallbackReport, Sample } from './callback-payloads.ts';
import { jsonFit } from './json-fit.ts';

export interface CallbackBody {
  /** JSON whose UTF-8 is what goes out. */
  readonly text: string;
  /** Kinds of what had to be left out, sorted; empty = nothing. */
  readonly losses: readonly string[];
}

/** Body for `completion_callback_url`: how the agent's part ended. */
export function completionBody(report: CallbackReport): CallbackBody {
  const losses = new Set<string>();
  const text = encode(
    {
      status: report.status,
      rollout_id: report.rolloutId,
      extra_fields: diagnosticsOf(report, losses),
      err_message: report.errMessage,
      err_category: report.errCategory,
    },
    losses,
  );
  return { text, losses: [...losses].sort() };
}

/** Body for `grader_callback_url`: the terminal one, with the sample and its reward. */
export function graderBody(report: CallbackReport): CallbackBody {
  const losses = new Set<string>();
  const sample = report.sample ?? null;
  const withSample = (wire: WireSample | null): string =>
    encode(
      {
        status: report.status,
        rollout_id: report.rolloutId,
        sample: wire,
        err_message: report.errMessage,
        err_category: report.errCategory,
        extra_fields: diagnosticsOf(report, losses),
      },
      losses,
    );
  const text = sample === null ? withSample(null) : wholeOrMinimal(sample, report, withSample);
  return { text, losses: [...losses].sort() };

  function wholeOrMinimal(
    whole: Sample,
    of: CallbackReport,
    encoded: (wire: WireSample) => string,
  ): string {
    const minimal = minimalSample(whole, of);
    try {
      return encoded({
        ...minimal,
        messages: whole.messages,
        metrics: jsonFit(whole.metrics, losses),
        extra_fields: jsonFit(whole.extraFields, losses),
      });
    } catch {
      losses.add('messages that are no JSON');
      return encoded(minimal);
    }
  }
}

interface WireSample {
  readonly messages: Sample['messages'];
  readonly label: string | null;
  readonly reward: number | null;
  readonly remove_sample: boolean;
  readonly metrics: Readonly<Record<string, unknown>>;
  readonly extra_fields: Readonly<Record<string, unknown>>;
}

/** What a receiver cannot do without. Receivers take any number for a reward to train on: there is one only for a kept sample that was graded. */
function minimalSample(sample: Sample, report: CallbackReport): WireSample {
  const isTrainable = report.status === 'success' && !sample.isRemoved;
  const isNumber = sample.reward !== null && Number.isFinite(sample.reward);
  return {
    messages: [],
    label: sample.label,
    reward: isTrainable && isNumber ? sample.reward : null,
    remove_sample: sample.isRemoved,
    metrics: {},
    extra_fields: {},
  };
}

function diagnosticsOf(
  report: CallbackReport,
  losses: Set<string>,
): Readonly<Record<string, unknown>> | null {
  return report.diagnostics === null ? null : jsonFit(report.diagnostics, losses);
}

/** Half a surrogate pair is no Unicode: receivers in other languages take such a text and fail when they store it. */
function encode(value: object, losses: Set<string>): string {
  const text = exactJson(value);
  if (!text.includes('\\ud')) return text;
  return text.replace(/\\(?:u(?<unit>d[89a-f][0-9a-f]{2})|.)/g, (escape, unit?: string) => {
    if (unit === undefined) return escape;
    losses.add('half a surrogate pair');
    return '\\ufffd';
  });
}
