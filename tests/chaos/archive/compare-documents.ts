/** Where a document of the archive differs from the one that its agent wrote, and whether it may; pure, and knows nothing of how the archive does it. */
import { isDeepStrictEqual } from 'node:util';
import type { Json } from './atif-documents.ts';

export interface Difference {
  readonly at: string;
  readonly before: unknown;
  readonly after: unknown;
}

export interface Expected {
  readonly rolloutId: string;
  /** null = the controller reported nothing. */
  readonly report: Json | null;
}

const sensitive = /(?:^|_)(?:api_key|apikey|authorization|credentials?|password|secret|token)$/;
const free = new Set(['extra', 'arguments', 'tool_definitions']);

/** Every place, to the last value. A null of the format is an absent field; one in the agent's own objects is a value. */
export function differences(before: unknown, after: unknown): readonly Difference[] {
  const found: Difference[] = [];
  /** `isFree`: it stands in an object of the agent's own. */
  const walk = (at: string, one: unknown, two: unknown, isFree: boolean): void => {
    if (isDeepStrictEqual(one, two) || (!isFree && one === null && two === undefined)) return;
    const areLists = Array.isArray(one) && Array.isArray(two) && !one.every(isNumber);
    if (areLists && one.length === two.length) {
      for (const [index, item] of one.entries())
        walk(`${at}/${index}`, item, two[index], isFree || isFreeField(at));
      return;
    }
    if (!isObject(one) || !isObject(two)) return void found.push({ at, before: one, after: two });
    for (const key of new Set([...Object.keys(one), ...Object.keys(two)]))
      walk(`${at}/${key}`, one[key], two[key], isFree || isFreeField(at));
  };
  walk('', before, after, false);
  return found;
}

function isFreeField(at: string): boolean {
  return free.has(at.slice(at.lastIndexOf('/') + 1));
}

/** One line per difference that none of the rules of the archive explains. */
export function unexplained(document: Json, kept: Json, expected: Expected): readonly string[] {
  return differences(document, kept).flatMap((difference) =>
    isExplained(difference, document, expected)
      ? []
      : [`${difference.at}: ${JSON.stringify([difference.before, difference.after])}`],
  );
}

function isExplained({ at, before, after }: Difference, document: Json, expected: Expected) {
  if (at === '/session_id' || at === '/trajectory_id') return after === expected.rolloutId;
  if (at === '/extra') return before == null && isDeepStrictEqual(keysOf(after), ['osmosis']);
  if (at === '/extra/osmosis' || at.startsWith('/extra/osmosis/')) return true;
  if (at === '/final_metrics') return before == null && isObject(after);
  if (at.startsWith('/final_metrics/')) return explainsTotal(at, after, document, expected);
  const parts = at.split('/');
  const place = parts.findLastIndex(
    (part, index) => part === 'extra' && parts[index - 1] === 'agent',
  );
  if (place > 0)
    return (
      after === '[REDACTED]' &&
      parts.slice(place + 1).some((key) => sensitive.test(key.toLowerCase().replaceAll('-', '_')))
    );
  return explainsCall(at, { before, after }, document, expected);
}

function explainsTotal(at: string, after: unknown, document: Json, { report }: Expected): boolean {
  if (at === '/final_metrics/total_steps') return after === stepsOf(document).length;
  const field = at.split('/').at(-1) ?? '';
  const sample = sampleOf(report);
  const totals = sample?.['final_metrics'] as Json | null | undefined;
  if (totals != null) return totals[field] === after;
  const name = field.replace('total_', '');
  const known = callsOf(report).flatMap((call) =>
    typeof call[name] === 'number' ? [call[name]] : [],
  );
  return known.length > 0 && after === known.reduce((sum, value) => sum + value, 0);
}

/** Each call of the report belongs to one step of the agent, if there are as many. */
function explainsCall(
  at: string,
  { before, after }: Pick<Difference, 'before' | 'after'>,
  document: Json,
  { report }: Expected,
): boolean {
  if (report === null) return false;
  if (at === '/agent/model_name')
    return after === (sampleOf(report)?.['model_name'] ?? report['model_name']);
  const match = /^\/steps\/(?<step>\d+)\/(?<field>.*)$/.exec(at);
  const index = Number(match?.groups?.['step'] ?? -1);
  const agents = stepsOf(document).flatMap(({ source }, place) =>
    source === 'agent' ? [place] : [],
  );
  const calls = callsOf(report);
  const call = agents.length === calls.length ? calls[agents.indexOf(index)] : undefined;
  if (call === undefined) return false;
  const field = match?.groups?.['field'] ?? '';
  if (field === 'llm_call_count') return after === 1;
  if (field === 'model_name') return after === call['model_name'];
  if (field === 'metrics' && before == null)
    return Object.entries(after as Json).every(([key, value]) =>
      isDeepStrictEqual(value, call[key]),
    );
  const [, name = ''] = field.split('/');
  if (!field.startsWith('metrics/')) return false;
  if (name === 'extra')
    return field === 'metrics/extra'
      ? before == null && isDeepStrictEqual(after, call['extra'])
      : field === 'metrics/extra/reported';
  const erases = Array.isArray(after) && after.length === 0 && before != null;
  return !erases && isDeepStrictEqual(after, call[name]) && after !== undefined;
}

function sampleOf(report: Json | null): Json | undefined {
  return (report?.['samples'] as { readonly any: Json } | undefined)?.any;
}

function callsOf(report: Json | null): readonly Json[] {
  return (sampleOf(report)?.['llm_call_metrics'] ?? []) as readonly Json[];
}

function stepsOf(document: Json): readonly Json[] {
  return document['steps'] as readonly Json[];
}

function keysOf(value: unknown): readonly string[] {
  return isObject(value) ? Object.keys(value) : [];
}

function isNumber(value: unknown): boolean {
  return typeof value === 'number';
}

function isObject(value: unknown): value is Json {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
