/** Fields of ours that an endpoint may not know. It says so with a 4xx that names the field; the request then goes out again without it. */
const optionalFields = [
  'return_token_ids',
  'session_id',
  'stream_options',
  'return_input_ids_in_sglext',
  'return_output_ids_in_sglext',
  'return_routed_experts',
  'return_indexer_topk',
];

const refusal =
  /unrecognized request argument|unknown (?:field|parameter|argument|name)|unexpected (?:keyword|field|property)|extra (?:inputs|fields)[^.]*not (?:permitted|allowed)|additional properties|unsupported parameter|invalid field|not supported for stream/i;

/** Which fields of `body` the answer names as unknown. */
export function refusedFields(
  status: number,
  answer: string,
  body: Readonly<Record<string, unknown>>,
): readonly string[] {
  if ((status !== 400 && status !== 422) || !(refusal.test(answer) || isPydantic(answer)))
    return [];
  return optionalFields.filter((name) => Object.hasOwn(body, name) && answer.includes(name));
}

/** SGLang knows `return_token_ids`, but not in streams. */
export function isRefusedInStreams(answer: string): boolean {
  return /not supported for stream/i.test(answer);
}

function isPydantic(answer: string): boolean {
  return answer.includes('extra_forbidden');
}
