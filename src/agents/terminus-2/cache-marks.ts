/** Anthropic's endpoints cache a prompt only up to marks that the caller sets. */
import type { ChatMessage, ContentPart } from '../../engines/chat-message.ts';

/** As many as a request may carry. */
const maxMarks = 4;

export function wantsCacheMarks(modelName: string): boolean {
  return /anthropic|claude/iu.test(modelName);
}

/** The newest messages with a mark each; the given ones are left as they are. */
export function cacheMarked(messages: readonly ChatMessage[]): readonly ChatMessage[] {
  const firstMarked = messages.length - maxMarks;
  return messages.map((message, index) => (index < firstMarked ? message : marked(message)));
}

function marked(message: ChatMessage): ChatMessage {
  // An empty text block is refused.
  if (typeof message.content !== 'string' || message.content === '') return message;
  const part: ContentPart = {
    type: 'text',
    text: message.content,
    cache_control: { type: 'ephemeral' },
  };
  return { ...message, content: [part] };
}
