/** Makes ids of conversations: short texts here, long ones in a thread, since a tokenizer takes ten microseconds and more for each id. */
import type { ChatCodec, Conversation, KnownPrefix } from '../codec.ts';

export interface PromptRenderer {
  /** A whole conversation, up to the opening of the assistant's turn. CONVERSATION_INVALID, as the codec. */
  render(conversation: Conversation): Promise<Int32Array>;
  /** What stands behind a known prefix. CONVERSATION_INVALID, as the codec. */
  renderSuffix(conversation: Conversation, prefix: KnownPrefix): Promise<PromptSuffix>;
}

export interface PromptSuffix {
  readonly ids: Int32Array;
  /** How many ids of the prefix's end they stand in the place of. */
  readonly trimmed: number;
}

/** All of it at once. */
export function codecRenderer(codec: ChatCodec): PromptRenderer {
  return {
    // What the codec throws is a rejection.
    render: (conversation) =>
      Promise.resolve().then(() => codec.render(conversation, { opensTurn: true }).ids),
    renderSuffix: (conversation, prefix) =>
      Promise.resolve().then(() => codec.renderSuffix(conversation, prefix)),
  };
}

/** Characters that are encoded in a few milliseconds. */
const mostHere = 2_000;

/** `here` for what is short, `elsewhere` for all else. */
export function splitRenderer(here: PromptRenderer, elsewhere: PromptRenderer): PromptRenderer {
  const by = (text: readonly unknown[]): PromptRenderer => (isLong(text) ? elsewhere : here);
  return {
    render: (conversation) =>
      by([...conversation.messages, ...conversation.tools]).render(conversation),
    renderSuffix: (conversation, prefix) =>
      // Tools are rendered, although not encoded, with every suffix.
      by([...conversation.messages.slice(prefix.messages), ...conversation.tools]).renderSuffix(
        conversation,
        prefix,
      ),
  };
}

function isLong(parts: readonly unknown[]): boolean {
  let length = 0;
  const count = (value: unknown): void => {
    if (typeof value === 'string') length += value.length;
    else if (typeof value === 'object' && value !== null)
      for (const each of Object.values(value)) if (length <= mostHere) count(each);
  };
  count(parts);
  return length > mostHere;
}
