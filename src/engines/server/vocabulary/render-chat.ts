/**
 * Chats as ids, in a ChatML of our own:
 *
 *     <|im_start|>system
 *     Functions that may be called, as JSON, one per line:
 *     {"type":"function","function":{…}}<|im_end|>"tools"
 *     <|im_start|>user
 *     TEXT<|im_end|>
 *     <|im_start|>assistant
 *     <think>REASONING</think>TEXT<tool_call>
 *     {"name": "NAME", "arguments": ARGUMENTS}
 *     </tool_call><|im_end|>{"tool_calls":[{"id":"call_1"}]}
 *     <|im_start|>tool
 *     TEXT<|im_end|>{"tool_call_id":"call_1"}
 *
 * Behind the end of a turn stands, as JSON, whatever of the message the turn itself does not show, so that `parseChat` gives back every message
 * as it was. It stands there and not before so that a turn that was sampled and the same turn rendered later have the same ids up to the end
 * token: prompts grow by appending. Markers are single ids that no text encodes to, hence no text can open or close a turn. Texts are encoded
 * one by one: a vocabulary that remembers texts pays only for new ones.
 */
import type { ChatMessage, ChatToolCall, ContentPart } from '../../chat-message.ts';
import type { ChatRequest, Vocabulary } from '../token-model.ts';
import { chatMarkers, type ChatMarkers } from './chat-markers.ts';

export const toolsTrailer = 'tools';
export const toolsHeading = 'Functions that may be called, as JSON, one per line:';

/** What an assistant says in one turn. */
export interface AssistantReply {
  readonly content: string;
  readonly reasoning?: string | null;
  readonly toolCalls?: readonly { readonly name: string; readonly arguments: string }[];
}

/** The prompt's ids, ending where the assistant's turn begins. */
export function renderChat(vocabulary: Vocabulary, chat: ChatRequest): number[] {
  const writer = new ChatWriter(vocabulary);
  if (chat.tools.length > 0) writer.addTools(chat.tools);
  for (const message of chat.messages) writer.addMessage(message);
  writer.openTurn('assistant');
  return writer.ids;
}

/** The ids of a reply as `renderChat` will show it in the next prompt, with the end token. */
export function renderReply(vocabulary: Vocabulary, reply: AssistantReply): number[] {
  const writer = new ChatWriter(vocabulary);
  if (typeof reply.reasoning === 'string') writer.addReasoning(reply.reasoning);
  writer.addText(reply.content);
  for (const call of reply.toolCalls ?? []) writer.addToolCall(call.name, call.arguments);
  writer.closeTurn();
  return writer.ids;
}

class ChatWriter {
  readonly ids: number[] = [];
  readonly #vocabulary: Vocabulary;
  readonly #markers: ChatMarkers;

  constructor(vocabulary: Vocabulary) {
    this.#vocabulary = vocabulary;
    this.#markers = chatMarkers(vocabulary);
  }

  addTools(tools: ChatRequest['tools']): void {
    this.openTurn('system');
    this.addText([toolsHeading, ...tools.map((tool) => JSON.stringify(tool))].join('\n'));
    this.closeTurn();
    this.addText(`${JSON.stringify(toolsTrailer)}\n`);
  }

  addMessage(message: ChatMessage): void {
    const { role, content, reasoning_content: reasoning, tool_calls: toolCalls, ...rest } = message;
    const trailer: Record<string, unknown> = rest;
    this.openTurn(role);

    if (role === 'assistant' && typeof reasoning === 'string' && this.#markers.think !== null)
      this.addReasoning(reasoning);
    else if (reasoning !== undefined) trailer['reasoning_content'] = reasoning;

    const showsCalls = role === 'assistant' && this.#markers.toolCall !== null;
    const calls = showsCalls ? (toolCalls ?? []) : [];
    if (Array.isArray(content)) trailer['content'] = this.#addParts(content);
    else if (typeof content === 'string') this.addText(content);
    // An empty turn is read as '' without calls and as null with calls.
    if (content === null ? calls.length === 0 : content === '' && calls.length > 0)
      trailer['content'] = content;

    for (const call of calls) this.addToolCall(call.function.name, call.function.arguments);
    if (toolCalls !== undefined)
      trailer['tool_calls'] = calls.length > 0 ? calls.map(hiddenPart) : toolCalls;

    this.closeTurn();
    this.addText(Object.keys(trailer).length === 0 ? '\n' : `${JSON.stringify(trailer)}\n`);
  }

  openTurn(role: ChatMessage['role']): void {
    this.ids.push(this.#markers.turnStart);
    this.addText(`${role}\n`);
  }

  closeTurn(): void {
    this.ids.push(this.#markers.turnEnd);
  }

  addReasoning(text: string): void {
    this.#addMarked(this.#markers.think, ['<think>', '</think>'], text);
  }

  addToolCall(name: string, callArguments: string): void {
    const body = `\n{"name": ${JSON.stringify(name)}, "arguments": ${callArguments}}\n`;
    this.#addMarked(this.#markers.toolCall, ['<tool_call>', '</tool_call>'], body);
  }

  addText(text: string): void {
    for (const id of this.#vocabulary.encode(text, { parsesSpecial: false })) this.ids.push(id);
  }

  #addMarked(ids: ChatMarkers['think'], names: readonly [string, string], text: string): void {
    if (ids === null) {
      this.addText(`${names[0]}${text}${names[1]}`);
      return;
    }
    this.ids.push(ids.start);
    this.addText(text);
    this.ids.push(ids.end);
  }

  /** Writes the texts of all parts and returns the parts with the length of its text in the place of each text. */
  #addParts(parts: readonly ContentPart[]): unknown[] {
    this.addText(parts.map((part) => part.text ?? '').join(''));
    return parts.map((part) =>
      part.text === undefined ? part : { ...part, text: part.text.length },
    );
  }
}

/** What a shown call does not show. */
function hiddenPart(call: ChatToolCall): unknown {
  const { type, function: called, ...rest } = call;
  const more = Object.entries(called).filter(([key]) => key !== 'name' && key !== 'arguments');
  return {
    ...rest,
    ...((type as string) === 'function' ? {} : { type }),
    ...(more.length === 0 ? {} : { function: Object.fromEntries(more) }),
  };
}
