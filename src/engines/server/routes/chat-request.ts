import { z } from 'zod';
import type { ChatMessage, ToolDefinition } from '../../chat-message.ts';
import type { SamplingParams } from '../../engine.ts';
import { openAiSampling, readBody, samplingOf, tokenIds } from '../body.ts';
import { speaks, type Dialect } from '../engine-parts.ts';
import { Refusal } from '../refusal.ts';

const schema = openAiSampling.extend({
  model: z.string().nullish(),
  messages: z
    .array(
      z.looseObject({
        role: z.enum(['system', 'developer', 'user', 'assistant', 'tool']),
        content: z
          .union([z.string(), z.array(z.looseObject({ type: z.string() })), z.null()])
          .optional(),
      }),
    )
    .nullish(),
  tools: z
    .array(z.looseObject({ type: z.string(), function: z.looseObject({ name: z.string() }) }))
    .nullish(),
  tool_choice: z.unknown().optional(),
  stream: z.boolean().nullish(),
  stream_options: z.looseObject({ include_usage: z.boolean().nullish() }).nullish(),
  logprobs: z.boolean().nullish(),
  top_logprobs: z.int().min(0).nullish(),
  input_ids: tokenIds.nullish(),
  rid: z.string().nullish(),
  request_id: z.string().nullish(),
  separate_reasoning: z.boolean().nullish(),
  return_meta_info: z.boolean().nullish(),
  return_token_ids: z.boolean().nullish(),
  return_tokens_as_token_ids: z.boolean().nullish(),
  return_input_ids: z.boolean().nullish(),
  return_output_ids: z.boolean().nullish(),
  return_input_ids_in_sglext: z.boolean().nullish(),
  return_output_ids_in_sglext: z.boolean().nullish(),
});

/** What OpenAI's own endpoint takes; everything else is an extension of some engine. */
const openAiArguments = new Set(
  (
    'model messages tools tool_choice parallel_tool_calls stream stream_options logprobs top_logprobs max_tokens max_completion_tokens ' +
    'temperature top_p n stop seed frequency_penalty presence_penalty logit_bias response_format user metadata store service_tier ' +
    'reasoning_effort modalities audio prediction functions function_call web_search_options prompt_cache_key safety_identifier verbosity'
  ).split(' '),
);

export interface ChatRequestBody {
  /** null = `inputIds` stand for the prompt. */
  readonly messages: readonly ChatMessage[] | null;
  readonly inputIds: readonly number[] | null;
  readonly tools: readonly ToolDefinition[];
  readonly model: string | null;
  readonly requestId: string | null;
  readonly sampling: SamplingParams;
  readonly isStreaming: boolean;
  readonly showsUsage: boolean;
  readonly logprobs: boolean;
  readonly topLogprobs: number;
  readonly separatesReasoning: boolean;
  readonly returnsMetaInfo: boolean;
  /** vLLM's fields. */
  readonly returnsTokenIds: boolean;
  readonly namesTokensById: boolean;
  /** SGLang's `sglext`. */
  readonly returnsInputIds: boolean;
  readonly returnsOutputIds: boolean;
}

/** A Refusal for what the dialect would refuse. */
export function readChatRequest(body: unknown, dialect: Dialect): ChatRequestBody {
  if (dialect === 'openai') refuseExtensions(body);
  const fields = readBody(schema, body);
  const isSglang = speaks(dialect, 'sglang');
  const isVllm = speaks(dialect, 'vllm');
  const isStreaming = fields.stream === true;
  const inputIds = isSglang ? (fields.input_ids ?? null) : null;
  const returnsMetaInfo = isSglang && fields.return_meta_info === true;
  if (inputIds === null && (fields.messages ?? []).length === 0)
    throw new Refusal(400, 'messages: at least one is needed');
  if (returnsMetaInfo && isStreaming)
    throw new Refusal(400, 'return_meta_info is not supported for streams');
  if (dialect === 'sglang' && isStreaming && fields.return_token_ids === true)
    throw new Refusal(400, 'return_token_ids is not supported for streams');
  return {
    messages: inputIds === null ? (fields.messages as readonly ChatMessage[]) : null,
    inputIds,
    tools: fields.tool_choice === 'none' ? [] : ((fields.tools ?? []) as ToolDefinition[]),
    model: fields.model ?? null,
    requestId: (isSglang ? fields.rid : null) ?? (isVllm ? fields.request_id : null) ?? null,
    sampling: samplingOf(fields),
    isStreaming,
    showsUsage: isStreaming && fields.stream_options?.include_usage === true,
    logprobs: fields.logprobs === true,
    topLogprobs: fields.logprobs === true ? (fields.top_logprobs ?? 0) : 0,
    separatesReasoning: dialect !== 'openai' && fields.separate_reasoning !== false,
    returnsMetaInfo,
    returnsTokenIds: dialect !== 'openai' && fields.return_token_ids === true,
    namesTokensById: isVllm && fields.return_tokens_as_token_ids === true,
    returnsInputIds:
      isSglang && (fields.return_input_ids_in_sglext ?? fields.return_input_ids) === true,
    returnsOutputIds:
      isSglang && (fields.return_output_ids_in_sglext ?? fields.return_output_ids) === true,
  };
}

function refuseExtensions(body: unknown): void {
  const unknown = Object.keys(body ?? {}).find((key) => !openAiArguments.has(key));
  if (unknown !== undefined)
    throw new Refusal(400, `Unrecognized request argument supplied: ${unknown}`, {
      type: 'invalid_request_error',
    });
}
