/** Tokens and log-probabilities as the dialects show them. */
import { exactNumber } from './exact-number.ts';
import type { Generation } from './generation.ts';
import type { SampledToken, ScoredToken, Vocabulary } from './token-model.ts';

/** One entry of `logprobs.content` in a chat answer. */
export function chatLogprob(
  token: SampledToken,
  vocabulary: Vocabulary,
  asIds: boolean,
): Record<string, unknown> {
  const entry = (id: number, logprob: number): Record<string, unknown> => ({
    token: asIds ? `token_id:${id}` : textOf(id, vocabulary),
    logprob: exactNumber(logprob),
    bytes: [...vocabulary.bytesOf(id)],
  });
  return {
    ...entry(token.id, token.logprob),
    top_logprobs: token.top.map(({ id, logprob }) => entry(id, logprob)),
  };
}

export function textOf(id: number, vocabulary: Vocabulary): string {
  return vocabulary.decode([id], { skipsSpecial: false });
}

/** SGLang's triple. */
export function nativeLogprob(
  token: { readonly id: number; readonly logprob: number | null },
  vocabulary: Vocabulary | null,
): readonly unknown[] {
  return [
    token.logprob === null ? null : exactNumber(token.logprob),
    token.id,
    vocabulary === null ? null : textOf(token.id, vocabulary),
  ];
}

export interface MetaInfoOptions {
  readonly logprobs: boolean;
  readonly topLogprobs: number;
  /** Names of tokens in the triples; null = without. */
  readonly names: Vocabulary | null;
  /** How many tokens are told of. */
  readonly count: number;
  readonly input: readonly ScoredToken[] | null;
}

/** SGLang's `meta_info`. */
export function metaInfo(
  generation: Generation,
  weightVersion: string,
  options: MetaInfoOptions,
): Record<string, unknown> {
  const { request, finish } = generation;
  const tokens = generation.tokens.slice(0, options.count);
  const triple = (token: { id: number; logprob: number | null }): readonly unknown[] =>
    nativeLogprob(token, options.names);
  const input = options.input ?? [];
  return {
    id: request.id,
    finish_reason: finish,
    prompt_tokens: request.promptIds.length,
    weight_version: finish === null ? weightVersion : generation.weightVersion,
    completion_tokens: tokens.length,
    cached_tokens: generation.cachedTokens,
    e2e_latency:
      finish === null ? null : Math.max(0, generation.endedMs - generation.startedMs) / 1000,
    ...(options.logprobs && {
      input_token_logprobs: input.map(triple),
      output_token_logprobs: tokens.map(triple),
    }),
    ...(options.topLogprobs > 0 && {
      input_top_logprobs: input.map(({ top }) => (top.length === 0 ? null : top.map(triple))),
      output_top_logprobs: tokens.map(({ top }) => top.map(triple)),
    }),
  };
}

export function usageOf(generation: Generation): Record<string, unknown> {
  const promptTokens = generation.request.promptIds.length;
  return {
    prompt_tokens: promptTokens,
    completion_tokens: generation.tokens.length,
    total_tokens: promptTokens + generation.tokens.length,
    prompt_tokens_details: { cached_tokens: generation.cachedTokens },
  };
}

export function event(value: unknown): string {
  return `data: ${JSON.stringify(value)}\n\n`;
}

export const doneEvent = 'data: [DONE]\n\n';
