/** One engine call as a forest takes it, whatever it was captured by. */
import type { Logprobs } from './token-delta.ts';

/** `turn` is the agent's work, all others are asides of its program. */
export type CallPurpose = 'turn' | 'title' | 'summary' | 'probe' | 'count-tokens';

export type CallStatus = 'completed' | 'truncated' | 'aborted';

export interface CallMessage {
  readonly role: string;
  readonly [field: string]: unknown;
}

export interface ForestCall {
  /** Counts calls in the order in which they were sent. */
  readonly call: number;
  readonly purpose: CallPurpose;
  /** `user-agent` of who called; null = it says none. */
  readonly client: string | null;
  /** The earlier call in whose place this one stands; null = none. */
  readonly repeats: number | null;
  readonly promptIds: Int32Array | readonly number[];
  readonly outputIds: Int32Array | readonly number[];
  /** One per output id; null = the engine did not say. */
  readonly logprobs: Logprobs | readonly number[] | null;
  readonly weightVersion: string | null;
  readonly status: CallStatus;
  /** Of the prompt, that the engine had in its cache; null = it does not say. */
  readonly cachedTokens: number | null;
  /** Of the request; null = not known, and labels are told by ids alone. */
  readonly messages: readonly CallMessage[] | null;
  /** What was sampled, as text; empty where nothing is known of it. */
  readonly answer: SampledWords;
  /** On one clock; null = calls are taken to come one after the other. */
  readonly time: { readonly sentMs: number; readonly endedMs: number } | null;
}

export interface SampledWords {
  readonly text: string;
  /** Arguments of tool calls, as sampled. */
  readonly toolArguments: readonly string[];
}
