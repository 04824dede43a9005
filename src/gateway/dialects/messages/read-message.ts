/**
 * The content of one message as items, in its own order. A block that a chat model cannot be given is never lost silently: what the client's user or program
 * wrote is refused by name; what came back from a tool, or from a tool of the vendor's in an earlier turn, becomes text that says so.
 */
import type { ConversationItem, InputPart } from '../../items/conversation.ts';
import { blocksOf, type Block } from './blocks.ts';
import { readParts } from './read-parts.ts';
import { blockSchemas, parsed, type GivenMessage } from './request-schema.ts';
import { carriedThinking } from './thinking-signature.ts';

/** Items of a message of the user or the assistant. Empty text is left out; blank text too where the message has nothing else. */
export function readMessage(message: GivenMessage, at: string): readonly ConversationItem[] {
  const { role, content } = message;
  const items: ConversationItem[] = [];
  let parts: InputPart[] = [];
  const endParts = (): void => {
    if (parts.length > 0) items.push({ kind: 'message', role, parts });
    parts = [];
  };
  for (const block of blocksOf(content, `${at}.content`)) {
    const item = role === 'assistant' ? assistantItem(block) : userItem(block);
    if (item === null)
      for (const part of role === 'assistant' ? assistantParts(block) : readParts(block))
        parts.push(part);
    else {
      endParts();
      items.push(item);
    }
  }
  endParts();
  return items.some((item) => !isBlank(item)) ? items : [];
}

function isBlank(item: ConversationItem): boolean {
  return (
    item.kind === 'message' &&
    item.parts.every((part) => part.type === 'text' && part.text.trim() === '')
  );
}

/** null = a part of what is said. */
function userItem({ type, fields, at }: Block): ConversationItem | null {
  if (type !== 'tool_result') return null;
  const result = parsed(blockSchemas.tool_result, fields, at);
  const content = result.content ?? [];
  return {
    kind: 'tool-result',
    callId: result.tool_use_id,
    parts: blocksOf(content, `${at}.content`).flatMap((block) =>
      readParts(block, { inToolResult: true }),
    ),
    isError: result.is_error ?? false,
  };
}

/** null = a part of what is said. */
function assistantItem({ type, fields, at }: Block): ConversationItem | null {
  switch (type) {
    case 'thinking': {
      const { thinking, signature } = parsed(blockSchemas.thinking, fields, at);
      const opaque = signature ?? null;
      const carried = thinking === '' && opaque !== null ? carriedThinking(opaque) : null;
      return { kind: 'reasoning', text: carried ?? thinking, opaque };
    }
    case 'redacted_thinking':
      return {
        kind: 'reasoning',
        text: '',
        opaque: parsed(blockSchemas.redacted_thinking, fields, at).data,
      };
    case 'tool_use': {
      const { id, name, input } = parsed(blockSchemas.tool_use, fields, at);
      return {
        kind: 'tool-call',
        callId: id,
        tool: { name, namespace: null },
        form: 'function',
        arguments: JSON.stringify(input ?? {}),
      };
    }
    default:
      return null;
  }
}

function assistantParts(block: Block): readonly InputPart[] {
  const { type, fields, at } = block;
  if (type === 'compaction') {
    const text = parsed(blockSchemas.compaction, fields, at).content ?? '';
    return text === '' ? [] : [{ type: 'text', text }];
  }
  // The vendor's own tools do not run here, but a conversation may have been begun where they do.
  if (/^(?:server|mcp)_tool_use$|_tool_result$/.test(type))
    return [{ type: 'text', text: `[${type}] ${JSON.stringify(fields)}\n` }];
  return readParts(block);
}
