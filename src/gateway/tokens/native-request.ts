/** A chat request as routes that take ids know it: what it asks of the sampling, and of the engine. What is about messages and their ids is left out. */
import type { EngineKind, SamplingParams } from '../../engines/engine.ts';
import { listOf, recordOf, type JsonRecord } from '../../engines/shared/json.ts';
import { present } from '../../engines/shared/chat-request.ts';

export type TokenEngineKind = Exclude<EngineKind, 'chat'>;

export interface NativeRequest {
  readonly sampling: SamplingParams;
  readonly extraBody: JsonRecord;
}

/** `chat`: the fields of a chat completion. */
export function nativeRequest(kind: TokenEngineKind, chat: JsonRecord): NativeRequest {
  const maxTokens = chat['max_completion_tokens'] ?? chat['max_tokens'];
  const { stop } = chat;
  const sampling = present({
    maxTokens,
    temperature: chat['temperature'],
    topP: chat['top_p'],
    topK: chat['top_k'],
    minP: chat['min_p'],
    stop: stop === undefined ? undefined : (listOf(stop) ?? [stop]),
    stopTokenIds: chat['stop_token_ids'],
    seed: chat['seed'],
    frequencyPenalty: chat['frequency_penalty'],
    presencePenalty: chat['presence_penalty'],
  }) as SamplingParams; // as whoever made the request spelled them: the engine says what it does not take
  const shared = {
    repetition_penalty: chat['repetition_penalty'],
    logit_bias: chat['logit_bias'],
    ignore_eos: chat['ignore_eos'],
  };
  // Payloads that samples carry on.
  const replay = {
    return_routed_experts: chat['return_routed_experts'],
    return_indexer_topk: chat['return_indexer_topk'],
  };
  // Both would stop after a few tokens where chat goes on to the end of the context, unless the limit is said to be none.
  const hasNoLimit = maxTokens === undefined;
  switch (kind) {
    case 'sglang':
      return {
        sampling,
        extraBody: present({
          ...replay,
          sampling_params: present({
            ...(hasNoLimit && { max_new_tokens: null }),
            min_new_tokens: chat['min_tokens'],
            ...shared,
            json_schema: schemaText(chat['response_format']),
          }),
        }),
      };
    case 'vllm':
      return {
        sampling,
        extraBody: present({
          ...(hasNoLimit && { max_tokens: null }),
          min_tokens: chat['min_tokens'],
          ...shared,
          ...replay,
          response_format: chat['response_format'],
        }),
      };
  }
}

function schemaText(format: unknown): string | undefined {
  const fields = recordOf(format);
  if (fields?.['type'] === 'json_object') return '{"type": "object"}';
  const schema = recordOf(fields?.['json_schema'])?.['schema'];
  return schema === undefined ? undefined : JSON.stringify(schema);
}
