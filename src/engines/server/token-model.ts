/**
 * What `slipway engine` serves: something that turns messages into ids and samples ids. The scripted model (`mock/`) and real weights (`gguf/`)
 * stand behind it; the routes of all dialects, faults, latency, the KV account and the log stand before it and know nothing of either.
 */
import type { ChatMessage, ToolDefinition } from '../chat-message.ts';
import type { SamplingParams } from '../engine.ts';

/** Text, bytes and ids of one vocabulary. */
export interface Vocabulary {
  /** Number of ids. */
  readonly size: number;
  readonly endId: number;
  /** Canonical ids. Special tokens are recognised in `text` only when asked for; otherwise they are ordinary characters. */
  encode(text: string, options: { readonly parsesSpecial: boolean }): number[];
  /** Bytes of one id; a special token has those of its name. */
  bytesOf(id: number): Uint8Array;
  isSpecial(id: number): boolean;
  /** Whether this id ends a reply: `endId`, and what else the model ends with. */
  isEnd(id: number): boolean;
  /** Invalid UTF-8 is replaced. */
  decode(ids: readonly number[], options: { readonly skipsSpecial: boolean }): string;
}

export interface ChatRequest {
  readonly messages: readonly ChatMessage[];
  readonly tools: readonly ToolDefinition[];
}

export interface SampledToken {
  readonly id: number;
  readonly logprob: number;
  /** The likeliest ids and their log-probabilities, best first; empty unless asked for. */
  readonly top: readonly { readonly id: number; readonly logprob: number }[];
}

export interface SampleRequest {
  readonly requestId: string;
  readonly promptIds: readonly number[];
  readonly sampling: SamplingParams;
  readonly topLogprobs: number;
}

export interface ScoreRequest {
  readonly ids: readonly number[];
  /** The first position that is scored. */
  readonly from: number;
  readonly topLogprobs: number;
}

/** One position of a scored text; the first of all has nothing before it, so its log-probability is null. */
export interface ScoredToken {
  readonly id: number;
  readonly logprob: number | null;
  readonly top: readonly { readonly id: number; readonly logprob: number }[];
}

export interface TokenModel {
  readonly name: string;
  /** Prompt and output together, in tokens. */
  readonly contextTokens: number;
  readonly vocabulary: Vocabulary;
  /** The prompt's ids, ending where the assistant's turn begins. */
  render(request: ChatRequest): number[];
  /** Samples until the end token (which is yielded), a stop rule of the caller's, or the signal. Never more than `sampling.maxTokens`. */
  sample(request: SampleRequest, signal: AbortSignal): AsyncIterable<SampledToken>;
  /** Log-probabilities of `ids` from `from` to the end, each given all ids before it; what `sample` reports for the same prefix. */
  score(request: ScoreRequest, signal: AbortSignal): Promise<readonly ScoredToken[]>;
  close(): Promise<void>;
}
