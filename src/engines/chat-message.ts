/** Messages as chat endpoints spell them; fields that we do not know are kept. */
export interface ChatMessage {
  readonly role: 'system' | 'developer' | 'user' | 'assistant' | 'tool';
  /** A string, parts, or null where only tool calls speak. */
  readonly content: string | readonly ContentPart[] | null;
  readonly reasoning_content?: string | null;
  /** What newer hosts call the same. */
  readonly reasoning?: string | null;
  readonly tool_calls?: readonly ChatToolCall[];
  readonly tool_call_id?: string;
  readonly name?: string;
}

export interface ContentPart {
  readonly type: string;
  readonly text?: string;
  readonly [key: string]: unknown;
}

export interface ChatToolCall {
  readonly id: string;
  readonly type: 'function';
  /** `arguments` is the text that was sampled, not parsed. */
  readonly function: { readonly name: string; readonly arguments: string };
}

/** OpenAI's function style. */
export interface ToolDefinition {
  readonly type: 'function';
  readonly function: {
    readonly name: string;
    readonly description?: string;
    readonly parameters?: Readonly<Record<string, unknown>>;
    readonly strict?: boolean;
  };
}
