/**
 * What a client asks of a model, freed of its dialect: pieces in the client's own order, nothing merged and nothing reordered. Dialects read requests into it;
 * `chat-request.ts` makes the upstream's messages of it, by rules under which the prompt of a turn stays the beginning of the next one's.
 */
import type { SamplingParams } from '../../engines/engine.ts';

export type InputPart =
  | { readonly type: 'text'; readonly text: string }
  /** http(s) address or data URL. */
  | { readonly type: 'image'; readonly url: string };

export interface ToolIdentity {
  /** As the client knows it, without its namespace. */
  readonly name: string;
  /** null = none. */
  readonly namespace: string | null;
}

export type ConversationItem =
  | {
      readonly kind: 'message';
      readonly role: 'system' | 'developer' | 'user' | 'assistant';
      readonly parts: readonly InputPart[];
    }
  /** What the model thought before the item that follows. `opaque` is the client's own carrier and goes nowhere. */
  | { readonly kind: 'reasoning'; readonly text: string; readonly opaque: string | null }
  | {
      readonly kind: 'tool-call';
      readonly callId: string;
      readonly tool: ToolIdentity;
      readonly form: ToolForm;
      /** As sampled: JSON text of a function, the raw input of a custom tool. */
      readonly arguments: string;
    }
  | {
      readonly kind: 'tool-result';
      readonly callId: string;
      readonly parts: readonly InputPart[];
      readonly isError: boolean;
    };

/** A custom tool takes free text, bound by a grammar or not. */
export type ToolForm = 'function' | 'custom';

export interface ToolSpec extends ToolIdentity {
  readonly form: ToolForm;
  readonly description: string | null;
  /** JSON schema; null = an object without fields. Of a custom tool: null. */
  readonly parameters: Readonly<Record<string, unknown>> | null;
  /** null = the client does not say. */
  readonly isStrict: boolean | null;
}

export type ToolChoice =
  | { readonly kind: 'auto' | 'none' | 'required' }
  | { readonly kind: 'tool'; readonly tool: ToolIdentity };

export type AnswerFormat =
  | { readonly kind: 'json' }
  | {
      readonly kind: 'schema';
      readonly name: string;
      readonly description: string | null;
      readonly schema: Readonly<Record<string, unknown>>;
      readonly isStrict: boolean;
    };

export interface Conversation {
  /** As the client names it; null = it names none. */
  readonly model: string | null;
  readonly items: readonly ConversationItem[];
  readonly tools: readonly ToolSpec[];
  /** null = the client does not say. */
  readonly toolChoice: ToolChoice | null;
  readonly allowsParallelToolCalls: boolean | null;
  readonly sampling: SamplingParams;
  /** null = text. */
  readonly format: AnswerFormat | null;
  /** `low`, `high`, … as the client spells it; null = it does not say. */
  readonly reasoningEffort: string | null;
  readonly isStreaming: boolean;
}
