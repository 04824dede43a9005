/** A captured call as steps of a trajectory: what went up is one of the user, what the model answered one of the agent. Both name the call. */
import type { SampledToolCall } from '../../engines/model-call.ts';
import type { NewStep } from '../../trajectory/trajectory-log.ts';
import type { AtifMetrics, AtifToolCall } from '../../wire/atif/atif.ts';
import type { CallPurpose, EndedCall, SentRequest } from './call-capture.ts';
import type { CapturedAnswer } from './captured-answer.ts';

export interface SentCall {
  /** Counts from 1. */
  readonly call: number;
  readonly at: Date;
  readonly purpose: CallPurpose;
  /** The earlier call that asked the same, where this one stands in its place; null = none. */
  readonly repeats: number | null;
  readonly request: SentRequest;
}

export function requestStep({ call, at, purpose, repeats, request }: SentCall): NewStep {
  const { dialect, isStreaming, client, body, text } = request;
  return {
    source: 'user',
    timestamp: at.toISOString(),
    message: `call ${call}`,
    extra: {
      ...{ call, dialect, purpose, streamed: isStreaming },
      ...(repeats !== null && { repeats }),
      ...(client !== null && { client }),
      request: text ?? JSON.stringify(body),
    },
  };
}

/** `answer` null = the engine did not begin to answer, or it counted tokens. */
export function answerStep(
  { call, at }: { readonly call: number; readonly at: Date },
  answer: CapturedAnswer | null,
  ended: EndedCall,
): NewStep {
  const { end, status, problem, isDelivered, answerId = null, firstByteMs, durationMs } = ended;
  const { tokens } = ended;
  const extra = {
    ...{ call, end, delivered: isDelivered },
    ...(status !== null && { status }),
    ...(problem !== null && { problem }),
    ...(answerId !== null && { answer_id: answerId }),
    ...(firstByteMs !== null && { first_byte_ms: rounded(firstByteMs) }),
    duration_ms: rounded(durationMs),
  };
  const timestamp = at.toISOString();
  if (answer === null)
    return {
      ...{ source: 'system', timestamp },
      message: tokens === undefined ? `call ${call}: no answer` : `call ${call}: ${tokens} tokens`,
      extra: { ...extra, ...(tokens !== undefined && { tokens }) },
    };
  const { text, reasoning, toolCalls, model, choice } = answer;
  return {
    ...{ source: 'agent', timestamp, message: text },
    ...(model !== null && { model_name: model }),
    ...(reasoning !== null && { reasoning_content: reasoning }),
    ...(toolCalls.length > 0 && { tool_calls: toolCalls.map(toolCall) }),
    ...{ metrics: metricsOf(answer), llm_call_count: 1 },
    extra: {
      ...extra,
      ...(toolCalls.length > 0 && { sampled_tool_calls: toolCalls }),
      ...(Object.keys(choice).length > 0 && { choice }),
    },
  };
}

/** The last step of a capture that lacks nothing. */
export function lastStep(calls: number, at: Date): NewStep {
  return {
    ...{ source: 'system', timestamp: at.toISOString(), message: `all of ${calls} calls` },
    extra: { calls },
  };
}

/** All that the ids of an answer stand for. */
export function sampledText({ reasoning, text, toolCalls }: CapturedAnswer): string {
  return [reasoning ?? '', text, ...toolCalls.flatMap((call) => [call.name, call.arguments])].join(
    '\n',
  );
}

function metricsOf(answer: CapturedAnswer): AtifMetrics {
  const { usage, promptIds, outputIds, logprobs, finishReason, stopString } = answer;
  const { requestId, weightVersion } = answer;
  return {
    ...(usage !== null && {
      prompt_tokens: usage.promptTokens,
      completion_tokens: usage.completionTokens,
    }),
    ...(usage?.cachedTokens != null && { cached_tokens: usage.cachedTokens }),
    ...(promptIds !== null && { prompt_token_ids: promptIds }),
    ...(outputIds !== null && { completion_token_ids: outputIds }),
    ...(outputIds !== null && logprobs !== null && { logprobs }),
    extra: {
      ...(requestId !== null && { request_id: requestId }),
      ...(finishReason !== null && { finish_reason: finishReason }),
      ...(stopString !== null && { stop_string: stopString }),
      ...(weightVersion !== null && { weight_version: weightVersion }),
      ...(usage?.reasoningTokens != null && { reasoning_tokens: usage.reasoningTokens }),
    },
  };
}

/** The format wants an object: what is none stands in it as it was sampled. */
function toolCall({ id, name, arguments: text }: SampledToolCall): AtifToolCall {
  return { tool_call_id: id, function_name: name, arguments: objectIn(text) ?? { _raw: text } };
}

function objectIn(text: string): Readonly<Record<string, unknown>> | null {
  try {
    const value: unknown = JSON.parse(text === '' ? '{}' : text);
    const isObject = typeof value === 'object' && value !== null && !Array.isArray(value);
    return isObject ? (value as Readonly<Record<string, unknown>>) : null;
  } catch {
    return null;
  }
}

function rounded(ms: number): number {
  return Math.round(ms * 1000) / 1000;
}
