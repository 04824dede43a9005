/** The body of a chat completion, as OpenAI spells it and the engines extend it. */
import type { GenerateInput, GenerateRequest, SamplingParams } from '../engine.ts';

export type JsonBody = Record<string, unknown>;

export function chatBody(
  request: GenerateRequest,
  input: Extract<GenerateInput, { readonly kind: 'messages' }>,
  dialect: JsonBody = {},
): JsonBody {
  const { model, isStreaming, wantsTokens } = request;
  return present({
    ...(model !== null && { model }),
    messages: input.messages,
    ...(input.tools !== undefined && input.tools.length > 0 && { tools: input.tools }),
    ...openAiSampling(request.sampling),
    stream: isStreaming,
    ...(isStreaming && { stream_options: { include_usage: true } }),
    ...(wantsTokens && { logprobs: true, return_token_ids: true }),
    ...dialect,
    ...request.extraBody,
  });
}

/** Asks SGLang for ids in `sglext`, the one place where its streams have them. */
export const sglextFields: JsonBody = {
  return_input_ids_in_sglext: true,
  return_output_ids_in_sglext: true,
};

export function openAiSampling(sampling: SamplingParams): JsonBody {
  return present({
    max_tokens: sampling.maxTokens,
    temperature: sampling.temperature,
    top_p: sampling.topP,
    top_k: sampling.topK,
    min_p: sampling.minP,
    stop: sampling.stop,
    stop_token_ids: sampling.stopTokenIds,
    seed: sampling.seed,
    frequency_penalty: sampling.frequencyPenalty,
    presence_penalty: sampling.presencePenalty,
  });
}

export function present(fields: Readonly<Record<string, unknown>>): JsonBody {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined));
}
