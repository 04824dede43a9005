/**
 * What a model answers, as a list of items that grows: the one source of the streamed events and of the final object of every dialect. Items come strictly one
 * after another: a delta always belongs to the item that was started last.
 */
import type { ToolForm, ToolIdentity } from './conversation.ts';

export type AnswerItem =
  | { readonly kind: 'reasoning'; readonly text: string }
  | { readonly kind: 'text'; readonly text: string }
  | {
      readonly kind: 'tool-call';
      /** What the client's result of it will name. */
      readonly callId: string;
      /** Name and namespace as the client declared them. */
      readonly tool: ToolIdentity;
      readonly form: ToolForm;
      /** As sampled: JSON text of a function; of a custom tool its raw input. */
      readonly arguments: string;
    };

/** Why it ended. `length`: the client's limit; `context`: no room left in the model's context; `filter`: the engine withheld the rest. */
export type AnswerFinish =
  'stop' | 'stop-sequence' | 'tool-calls' | 'length' | 'context' | 'filter';

export interface AnswerUsage {
  /** Includes cached tokens. */
  readonly inputTokens: number;
  readonly outputTokens: number;
  /** Not more than the input tokens. */
  readonly cachedTokens: number;
  /** Of the output tokens. */
  readonly reasoningTokens: number;
}

export interface Answer {
  readonly items: readonly AnswerItem[];
  readonly finish: AnswerFinish;
  /** The string that ended it; null unless `finish` is `stop-sequence`. */
  readonly stopSequence: string | null;
  /** null = the engine does not say. */
  readonly usage: AnswerUsage | null;
}

export type AnswerEvent =
  /** The item as it begins: its text and arguments are empty. `index` counts from 0 without gaps, in order. */
  | { readonly type: 'item-start'; readonly index: number; readonly item: AnswerItem }
  /** Never empty. Text, reasoning or arguments, by the kind of the item. */
  | { readonly type: 'item-delta'; readonly index: number; readonly delta: string }
  | { readonly type: 'item-end'; readonly index: number; readonly item: AnswerItem }
  /** The last one, after every item has ended. */
  | { readonly type: 'end'; readonly answer: Answer };
