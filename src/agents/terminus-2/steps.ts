/** Steps of a trajectory, made of what was said. */
import type { ChatMessage } from '../../engines/chat-message.ts';
import type { ModelResult } from '../../engines/model-call.ts';
import type { NewStep } from '../../trajectory/trajectory-log.ts';
import type { AtifMetrics } from '../../wire/atif/atif.ts';
import { costUsd, type ModelInfo } from './model-info.ts';
import { usageOf } from './run-ledger.ts';

export interface StepSource {
  /** What a step names when the engine does not say its model. */
  readonly modelName: string;
  readonly modelInfo: ModelInfo;
  readonly now: () => Date;
}

export function userStep(message: string, { now }: StepSource): NewStep {
  return { source: 'user', message, timestamp: now().toISOString() };
}

/** One call of the model. The ids are those of this call alone, as the engine gave them. */
export function replyStep(result: ModelResult, source: StepSource): NewStep {
  return {
    source: 'agent',
    timestamp: source.now().toISOString(),
    model_name: result.model ?? source.modelName,
    message: result.text,
    reasoning_content: result.reasoning,
    metrics: metricsOf(result, source.modelInfo),
    llm_call_count: 1,
    ...(result.toolCalls.length > 0 && { extra: { unasked_tool_calls: result.toolCalls } }),
  };
}

/** All that the ids of a reply stand for. */
export function sampledTextOf({ reasoning, text, toolCalls }: ModelResult): string {
  return [reasoning ?? '', text, ...toolCalls.flatMap((call) => [call.name, call.arguments])].join(
    '\n',
  );
}

/** All that messages say, as it reads: a secret may lie over the end of a line. */
export function spokenTextOf(messages: readonly ChatMessage[]): string {
  return messages
    .flatMap(({ content, reasoning_content: reasoning }) => [content, reasoning])
    .map((text) => (typeof text === 'string' ? text : JSON.stringify(text ?? '')))
    .join('\n');
}

/** Messages that a conversation begins with, from another one: each has its own step there. */
export function copiedSteps(messages: readonly ChatMessage[]): readonly NewStep[] {
  return messages.map((message) => {
    const isAgent = message.role === 'assistant';
    return {
      source: isAgent ? 'agent' : message.role === 'user' ? 'user' : 'system',
      message: typeof message.content === 'string' ? message.content : '',
      ...(isAgent &&
        message.reasoning_content != null && { reasoning_content: message.reasoning_content }),
      is_copied_context: true,
      ...(isAgent && {
        extra: { note: 'Copied from the parent trajectory, which has the metrics of this step.' },
      }),
    };
  });
}

function metricsOf(result: ModelResult, info: ModelInfo): AtifMetrics {
  const usage = usageOf(result);
  const cost = usage === null ? 0 : costUsd(info, usage);
  const { promptIds, outputIds, logprobs, requestId, weightVersion, finishReason } = result;
  return {
    ...(usage !== null && {
      prompt_tokens: usage.promptTokens,
      completion_tokens: usage.completionTokens,
    }),
    ...((usage?.cachedTokens ?? 0) > 0 && { cached_tokens: usage?.cachedTokens ?? 0 }),
    ...(cost > 0 && { cost_usd: cost }),
    ...(promptIds !== null && { prompt_token_ids: promptIds }),
    ...(outputIds !== null && { completion_token_ids: outputIds }),
    ...(outputIds !== null && logprobs !== null && { logprobs }),
    extra: {
      request_id: requestId,
      finish_reason: finishReason,
      ...(weightVersion !== null && { weight_version: weightVersion }),
    },
  };
}
