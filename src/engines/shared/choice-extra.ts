import { recordOf, type JsonRecord } from './json.ts';

/** Fields that the result has a place for. */
const placed = new Set([
  'index',
  'message',
  'delta',
  'text',
  'logprobs',
  'finish_reason',
  'token_ids',
  'prompt_token_ids',
  'provider_specific_fields',
  'meta_info',
]);
/** As large as the answer, and read already. */
const placedMeta = new Set([
  'id',
  'finish_reason',
  'prompt_tokens',
  'completion_tokens',
  'cached_tokens',
  'weight_version',
  'output_token_logprobs',
  'input_token_logprobs',
]);

/** What is left of a choice: its own fields, the provider's among them, and `meta_info` without what was read. */
export function choiceExtra(choice: JsonRecord, message: JsonRecord): JsonRecord {
  const meta = metaExtra(recordOf(choice['meta_info']));
  return {
    ...without(choice, placed),
    ...without(recordOf(message['provider_specific_fields']), placed),
    ...without(recordOf(choice['provider_specific_fields']), placed),
    ...(meta !== null && { meta_info: meta }),
  };
}

/** null = nothing is left. */
export function metaExtra(meta: JsonRecord | null): JsonRecord | null {
  const left = without(meta, placedMeta);
  return Object.keys(left).length === 0 ? null : left;
}

function without(fields: JsonRecord | null, names: ReadonlySet<string>): JsonRecord {
  return Object.fromEntries(
    Object.entries(fields ?? {}).filter(([name, value]) => !names.has(name) && value !== null),
  );
}
