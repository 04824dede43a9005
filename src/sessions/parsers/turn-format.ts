import type { ToolDefinition } from '../../engines/chat-message.ts';

/** How a family's models write what they think and call. */
export interface TurnFormat {
  /** null = thoughts are not told from text. */
  readonly reasoning: { readonly open: string; readonly close: string } | null;
  /** null = calls are not told from text. */
  readonly calls: CallFormat | null;
}

export interface CallFormat {
  readonly open: string;
  readonly close: string;
  /** Line ends that the template puts between a text and a call; they are not the text's. */
  readonly gap: string;
  /** What stands between the marks; null = that is no call, so it is text. Some families have several calls there. */
  parse(body: string, tools: readonly ToolDefinition[]): readonly ParsedCall[] | null;
}

export interface ParsedCall {
  readonly name: string;
  readonly arguments: string;
  /** Only where the model says one. */
  readonly id?: string;
}
