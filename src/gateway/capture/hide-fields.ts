/** Takes out of an answer what its client did not ask for. What was not there stays away, and all else stays as it is, in its order. */
import { listOf, recordOf, type JsonRecord } from '../../engines/shared/json.ts';
import type { HiddenFields } from './asked-fields.ts';

const idNames = ['prompt_token_ids', 'token_ids'];

/** One event of a stream, or a whole answer: the same object = nothing had to go; null = nothing is left that concerns the client. */
export function withoutHidden(
  document: JsonRecord,
  hidden: HiddenFields,
  { isStream }: { readonly isStream: boolean },
): JsonRecord | null {
  const unasked = [
    ...(hidden.tokenIds ? idNames : []),
    ...(hidden.sglext ? ['sglext'] : []),
    ...(hidden.usage && isStream ? ['usage'] : []),
  ];
  const left = withoutIn(without(document, unasked), 'sglext', hidden.replay);
  const choices = listOf(document['choices']);
  if (choices === null) return left;
  // An event of its own for what nobody asked for.
  if (choices.length === 0 && left !== document && isStream) return null;
  const shown = choices.map((choice) => choiceWithout(choice, hidden));
  if (shown.every((choice, index) => choice === choices[index])) return left;
  return Object.fromEntries(
    Object.entries(left).map(([name, value]) => [name, name === 'choices' ? shown : value]),
  );
}

function choiceWithout(choice: unknown, hidden: HiddenFields): unknown {
  const given = recordOf(choice);
  if (given === null) return choice;
  const shownMeta = withoutIn(given, 'meta_info', hidden.replay);
  const left = without(shownMeta, [
    ...(hidden.tokenIds ? idNames : []),
    ...(hidden.metaInfo ? ['meta_info'] : []),
    ...hidden.replay,
  ]);
  const hidesLogprobs = hidden.logprobs && (left['logprobs'] ?? null) !== null;
  const specific = recordOf(left['provider_specific_fields']);
  const shown = hidden.tokenIds && specific !== null ? without(specific, idNames) : specific;
  if (!hidesLogprobs && shown === specific) return left;
  return {
    ...left,
    // Without the wish for them engines say null, or nothing.
    ...(hidesLogprobs && { logprobs: null }),
    ...(shown !== specific && { provider_specific_fields: shown }),
  };
}

/** The same with less in one of its members. */
function withoutIn(fields: JsonRecord, member: string, names: readonly string[]): JsonRecord {
  const inner = recordOf(fields[member]);
  if (inner === null || names.length === 0) return fields;
  const left = without(inner, names);
  return left === inner ? fields : { ...fields, [member]: left };
}

function without(fields: JsonRecord, names: readonly string[]): JsonRecord {
  if (!names.some((name) => Object.hasOwn(fields, name))) return fields;
  return Object.fromEntries(Object.entries(fields).filter(([name]) => !names.includes(name)));
}
