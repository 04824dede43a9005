/**
 * The way back from ids to messages: gives back what `renderChat` was given, and makes the best of prompts that another template has
 * rendered (roles and texts are found, whatever is not in our form stays text). Any ids of the vocabulary are some chat.
 */
import { z } from 'zod';
import type { ChatMessage, ChatToolCall, ContentPart, ToolDefinition } from '../../chat-message.ts';
import type { Vocabulary } from '../token-model.ts';
import { chatMarkers, type ChatMarkers } from './chat-markers.ts';
import { toolsHeading, toolsTrailer } from './render-chat.ts';
import { type AssistantParts, readAssistantParts } from './assistant-parts.ts';

export interface ParsedChat {
  readonly messages: readonly ChatMessage[];
  readonly tools: readonly ToolDefinition[];
  /** Ids of the assistant's turn that is begun and not ended, as in a prompt that takes up an aborted answer. */
  readonly begun: readonly number[];
}

const roles = new Set<string>(['system', 'developer', 'user', 'assistant', 'tool']);

const trailerSchema = z.union([z.literal(toolsTrailer), z.record(z.string(), z.unknown())]);
type Trailer = z.infer<typeof trailerSchema>;

interface Turn {
  readonly role: ChatMessage['role'];
  readonly body: readonly number[];
  readonly bodyText: string;
  readonly trailer: Trailer;
}

export function parseChat(vocabulary: Vocabulary, ids: readonly number[]): ParsedChat {
  const markers = chatMarkers(vocabulary);
  const messages: ChatMessage[] = [];
  const tools: ToolDefinition[] = [];
  const before = ids.indexOf(markers.turnStart);
  const untold = textOf(vocabulary, before === -1 ? ids : ids.slice(0, before));
  if (untold.trim() !== '') messages.push({ role: 'user', content: untold });

  for (let start = before; start !== -1;) {
    const next = ids.indexOf(markers.turnStart, start + 1);
    const span = ids.slice(start + 1, next === -1 ? ids.length : next);
    const end = span.indexOf(markers.turnEnd);
    const turn = readTurn(vocabulary, span, end);
    if (next === -1 && end === -1 && turn.role === 'assistant')
      return { messages, tools, begun: turn.body };
    const found = turn.trailer === toolsTrailer ? readTools(turn.bodyText) : null;
    if (found === null) messages.push(readMessage(vocabulary, markers, turn));
    else tools.push(...found);
    start = next;
  }
  return { messages, tools, begun: [] };
}

/** `end` = place of the end token, -1 = none. */
function readTurn(vocabulary: Vocabulary, span: readonly number[], end: number): Turn {
  const shown = end === -1 ? span : span.slice(0, end);
  const text = textOf(vocabulary, shown);
  const newline = text.indexOf('\n');
  const name = newline === -1 ? text : text.slice(0, newline);
  return {
    role: roles.has(name) ? (name as ChatMessage['role']) : 'user',
    body: shown.slice(idsOfFirstLine(vocabulary, shown)),
    bodyText: newline === -1 ? '' : text.slice(newline + 1),
    trailer: readTrailer(end === -1 ? '' : textOf(vocabulary, span.slice(end + 1))),
  };
}

/** How many ids the role's line has. */
function idsOfFirstLine(vocabulary: Vocabulary, ids: readonly number[]): number {
  const index = ids.findIndex((id) => vocabulary.bytesOf(id).includes(0x0a));
  return index === -1 ? ids.length : index + 1;
}

function readTrailer(text: string): Trailer {
  if (text.trim() === '') return {};
  return trailerSchema.safeParse(jsonOf(text)).data ?? {};
}

function readTools(text: string): ToolDefinition[] | null {
  const [heading, ...lines] = text.split('\n');
  return heading === toolsHeading ? lines.map((line) => jsonOf(line) as ToolDefinition) : null;
}

function readMessage(vocabulary: Vocabulary, markers: ChatMarkers, turn: Turn): ChatMessage {
  const trailer = typeof turn.trailer === 'string' ? {} : turn.trailer;
  const { content, tool_calls: hidden, ...rest } = trailer;
  const parts =
    turn.role === 'assistant' ? readAssistantParts(vocabulary, markers, turn.body) : null;
  const calls = (parts?.toolCalls ?? []).map((call, index) => wholeCall(call, hidden, index));
  const text = parts === null ? turn.bodyText : parts.content;
  const toolCalls = calls.length > 0 ? calls : hidden;
  const message = {
    role: turn.role,
    content: wholeContent(text, content, calls.length > 0),
    ...(typeof parts?.reasoning === 'string' ? { reasoning_content: parts.reasoning } : {}),
    ...(toolCalls === undefined ? {} : { tool_calls: toolCalls }),
    ...rest,
  };
  return message as ChatMessage;
}

function wholeContent(text: string, hidden: unknown, hasCalls: boolean): ChatMessage['content'] {
  if (Array.isArray(hidden)) return wholeParts(text, hidden);
  if (text !== '') return text;
  if (hidden === null || hidden === '') return hidden;
  return hasCalls ? null : '';
}

function wholeParts(text: string, hidden: readonly unknown[]): ContentPart[] {
  let from = 0;
  return hidden.map((entry) => {
    const part = entry as Omit<ContentPart, 'text'> & { readonly text?: unknown };
    if (typeof part.text !== 'number') return part as ContentPart;
    const own = text.slice(from, from + part.text);
    from += part.text;
    return { ...part, text: own } as ContentPart;
  });
}

/** Calls of a sampled turn have no ids yet: they are numbered. */
function wholeCall(
  call: AssistantParts['toolCalls'][number],
  hidden: unknown,
  index: number,
): ChatToolCall {
  const entry = Array.isArray(hidden) ? (hidden[index] as Partial<ChatToolCall> | undefined) : {};
  return {
    id: `call_${index}`,
    type: 'function',
    ...entry,
    function: { ...entry?.function, ...call },
  };
}

function textOf(vocabulary: Vocabulary, ids: readonly number[]): string {
  return vocabulary.decode(ids, { skipsSpecial: false });
}

function jsonOf(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
