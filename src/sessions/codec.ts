/**
 * The codec port: how a family of models turns a conversation into ids, and sampled ids into a message. One implementation per family, over the vocabulary and
 * the chat template of a checkpoint. A codec holds no state of a session and is synchronous and pure: whoever has much to encode runs it off the main thread.
 *
 * The rule that all of it serves: a sampled id is never encoded again. A turn behind a known prefix is that prefix, minus what the family lets go of its end,
 * plus the ids of the new text alone.
 */
import type { ChatMessage, ToolDefinition } from '../engines/chat-message.ts';
import type { ModelPart, SampledToolCall } from '../engines/model-call.ts';

export interface Conversation {
  readonly messages: readonly ChatMessage[];
  readonly tools: readonly ToolDefinition[];
  /**
   * The tools as the request's body spells them, where whoever has the body can give it. A template then sees what a Python engine sees: JavaScript's own parse
   * has lost which whole numbers were written as fractions, and the order of keys that look like numbers.
   */
  readonly toolsText?: string;
  /** Variables for the template, as a request's `chat_template_kwargs` gives them; the family's fixed ones win. */
  readonly templateVariables: Readonly<Record<string, unknown>>;
}

export interface Rendered {
  readonly text: string;
  readonly ids: Int32Array;
}

/** What is known of the front of a conversation: ids that an engine saw and sampled, ending with an assistant's turn. */
export interface KnownPrefix {
  /** Prompt and output of the last turn. */
  readonly ids: Int32Array;
  /** How many messages of the conversation they stand for, the assistant's last one included. */
  readonly messages: number;
}

/** The prompt of the next turn is the prefix without its last `trimmed` ids, then `ids`. */
export interface RenderedSuffix {
  readonly text: string;
  readonly ids: Int32Array;
  /** At most the codec's `maxTrim`. */
  readonly trimmed: number;
}

export interface ChatCodec {
  /** As `--tokenizer-family` and the docs spell it, such as `qwen3`. */
  readonly family: string;
  /** How many ids at the end of a sampled turn the template may replace when the next turn comes: such as a stop id that doubles as an opener. */
  readonly maxTrim: number;
  /** Roles that may stand behind a sampled turn so that the front stays as it was. */
  readonly appendRoles: ReadonlySet<string>;
  /** Template variables that cannot be chosen; a conversation that wants another value is refused by whoever takes the request. */
  readonly fixedVariables: Readonly<Record<string, unknown>>;
  /** What an assistant's turn begins with, from the id on at which it is cut; null = nothing tells it from others. */
  readonly assistantStart: string | null;

  /** Template variables as the engine has to be told them, by which it reads what was sampled. Throws CONVERSATION_INVALID for values that the family does not know. */
  engineVariables(variables: Readonly<Record<string, unknown>>): Readonly<Record<string, unknown>>;

  /**
   * A whole conversation. `opensTurn`: the opening of the assistant's turn stands at the end. Throws CONVERSATION_INVALID where the template refuses the
   * conversation or would need what a checkpoint does not have; the message is the template's.
   */
  render(conversation: Conversation, options: { readonly opensTurn: boolean }): Rendered;

  /**
   * What is behind a known prefix, with what the template puts between, up to the opening of the assistant's turn. Never looks at the text of the prefix beyond
   * its last message. Roles are the caller's to check. Throws CONVERSATION_INVALID as `render` does, and where the text behind the prefix cannot be told from it.
   */
  renderSuffix(conversation: Conversation, prefix: KnownPrefix): RenderedSuffix;

  /** A parser for one sampled turn behind a prompt. `tools`: of the conversation, for families whose arguments need their types. */
  parser(turn: {
    readonly promptIds: Int32Array;
    readonly tools: readonly ToolDefinition[];
  }): TurnParser;

  /** Whether this id ends a turn. */
  isEnd(id: number): boolean;
  /** Whether ids like this at the end of a sequence are left out when two are compared: what only the template writes there, or a model samples as its stop. */
  isTrailing(id: number): boolean;
  /** Whether two token sequences are cut at this id to be compared: a control token that does not stand inside a turn. */
  isCut(id: number): boolean;
  /** Invalid UTF-8 is replaced. Special tokens are spelled out. */
  decode(ids: Int32Array): string;
}

/** Reads sampled ids as they come. Text that may still become a marker is held back until it is certain. Nothing sampled is an error: what is no call is text. */
export interface TurnParser {
  push(ids: readonly number[]): readonly TurnPart[];
  /** What was held back, and the message as a whole. Called once. */
  end(): { readonly parts: readonly TurnPart[]; readonly message: SampledMessage };
}

/** Parts of a model call, so that a dialect streams them as it streams those of any engine. */
export type TurnPart = Extract<
  ModelPart,
  {
    readonly type:
      'text-delta' | 'reasoning-delta' | 'tool-call-start' | 'tool-call-delta' | 'tool-call-end';
  }
>;

export interface SampledMessage {
  readonly text: string;
  /** null = none. */
  readonly reasoning: string | null;
  readonly toolCalls: readonly SampledToolCall[];
}
