import type { GenerateRequest } from '../engine.ts';
import { present, sglextFields, type JsonBody } from '../shared/chat-request.ts';
import { recordOf } from '../shared/json.ts';

/** The body of `/generate`. `sampling_params` of the caller's extra body are laid over ours, field by field. */
export function generateBody(request: GenerateRequest, ids: readonly number[]): JsonBody {
  const { sampling, extraBody } = request;
  return {
    input_ids: ids,
    ...(request.model !== null && { model: request.model }),
    rid: request.requestId,
    stream: request.isStreaming,
    ...(request.wantsTokens && { return_logprob: true }),
    ...extraBody,
    sampling_params: {
      ...present({
        max_new_tokens: sampling.maxTokens,
        temperature: sampling.temperature,
        top_p: sampling.topP,
        top_k: sampling.topK,
        min_p: sampling.minP,
        stop: sampling.stop,
        stop_token_ids: sampling.stopTokenIds,
        sampling_seed: sampling.seed,
        frequency_penalty: sampling.frequencyPenalty,
        presence_penalty: sampling.presencePenalty,
      }),
      ...recordOf(extraBody?.['sampling_params']),
    },
  };
}

/** What SGLang's chat adds: the id that `/abort_request` is called with, and ids in the places that this kind of answer has. */
export function chatFields({ requestId, isStreaming, wantsTokens }: GenerateRequest): JsonBody {
  return {
    rid: requestId,
    ...(wantsTokens && {
      ...sglextFields,
      // A stream that asks for `return_token_ids` or `return_meta_info` is refused.
      ...(isStreaming ? { return_token_ids: undefined } : { return_meta_info: true }),
    }),
  };
}
