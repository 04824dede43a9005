/** Fields of the request that stand in its response, as they hold here. */
import type { RequestFields } from './request-shape.ts';

/** What the writer needs to know of the request. */
export interface ResponsesExtra {
  readonly echo: Readonly<Record<string, unknown>>;
  /** The client asked for the reasoning in a form that it can send back. */
  readonly wantsReasoningCarrier: boolean;
}

export function echoOf(fields: RequestFields): Readonly<Record<string, unknown>> {
  const { reasoning, text, metadata } = fields;
  return {
    background: false,
    instructions: fields.instructions ?? null,
    max_output_tokens: fields.max_output_tokens ?? null,
    max_tool_calls: fields.max_tool_calls ?? null,
    metadata: metadata ?? {},
    parallel_tool_calls: fields.parallel_tool_calls ?? true,
    previous_response_id: fields.previous_response_id ?? null,
    prompt_cache_key: fields.prompt_cache_key ?? null,
    reasoning: { effort: reasoning?.effort ?? null, summary: reasoning?.summary ?? null },
    safety_identifier: fields.safety_identifier ?? null,
    service_tier: 'default',
    // Kept for `previous_response_id` as long as the rollout lives, unless the client says no.
    store: fields.store ?? true,
    temperature: fields.temperature ?? null,
    text: {
      format: text?.format ?? { type: 'text' },
      ...(typeof text?.verbosity === 'string' && { verbosity: text.verbosity }),
    },
    tool_choice: fields.tool_choice ?? 'auto',
    tools: fields.tools ?? [],
    top_logprobs: 0,
    top_p: fields.top_p ?? null,
    truncation: 'disabled',
    user: fields.user ?? null,
  };
}
