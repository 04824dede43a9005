/**
 * One call of a model, whatever the engine's dialect: parts as they arrive, then exactly one `end` with the whole. Dialects of the gateway,
 * sessions and agents see this and nothing of HTTP. Ids and log-probabilities are what the engine said, number for number; they are never
 * made by encoding text.
 */

/** `context`: no room is left in the model's context, where the engine tells that from the caller's own limit. */
export type FinishReason =
  'stop' | 'length' | 'context' | 'tool_calls' | 'content_filter' | 'abort';

export type ModelPart =
  | { readonly type: 'text-delta'; readonly text: string }
  | { readonly type: 'reasoning-delta'; readonly text: string }
  | {
      readonly type: 'tool-call-start';
      readonly index: number;
      readonly id: string;
      readonly name: string;
    }
  /** Of any call that has started and not ended: engines may mix calls that run side by side. */
  | { readonly type: 'tool-call-delta'; readonly index: number; readonly arguments: string }
  /** Once for each call, after all its deltas. */
  | { readonly type: 'tool-call-end'; readonly index: number }
  /** Ids of the prompt, at most once, as soon as the engine says them. */
  | { readonly type: 'prompt-ids'; readonly ids: readonly number[] }
  /** Sampled ids, in order, each once; not aligned with the text parts around them. `logprobs` is as long as `ids`, or null. */
  | {
      readonly type: 'tokens-delta';
      readonly ids: readonly number[];
      readonly logprobs: readonly number[] | null;
    }
  | { readonly type: 'end'; readonly result: ModelResult };

export interface SampledToolCall {
  readonly id: string;
  readonly name: string;
  /** As sampled. */
  readonly arguments: string;
}

export interface ModelUsage {
  /** Includes cached tokens. */
  readonly promptTokens: number;
  readonly completionTokens: number;
  /** null = the engine does not say. */
  readonly cachedTokens: number | null;
  /** Of the completion tokens; null = the engine does not say. */
  readonly reasoningTokens: number | null;
}

export interface ModelResult {
  readonly requestId: string;
  readonly text: string;
  /** null = none. */
  readonly reasoning: string | null;
  readonly toolCalls: readonly SampledToolCall[];
  readonly finishReason: FinishReason;
  /** The stop string of the request that ended it; null = none, or the engine does not say. */
  readonly stopString: string | null;
  /** null = not asked for, or the engine does not say. */
  readonly promptIds: readonly number[] | null;
  /** All sampled ids, the end token included when the engine counts it. */
  readonly outputIds: readonly number[] | null;
  /** One per output id. */
  readonly logprobs: readonly number[] | null;
  readonly weightVersion: string | null;
  /** null = the engine does not say. */
  readonly usage: ModelUsage | null;
  /** As the engine names it. */
  readonly model: string | null;
  /** Fields of the answer's choice that have no place above, for the agent's `extra`. */
  readonly extra: Readonly<Record<string, unknown>>;
}

/** Read once, to its end or until the reader returns; leaving early aborts the request at the engine. */
export interface ModelCall extends AsyncIterable<ModelPart> {
  readonly requestId: string;
}

/** Reads a call to its end. */
export async function collect(call: ModelCall): Promise<ModelResult> {
  let result: ModelResult | null = null;
  for await (const part of call) if (part.type === 'end') result = part.result;
  if (result === null) throw new Error('a model call ended without its result');
  return result;
}
