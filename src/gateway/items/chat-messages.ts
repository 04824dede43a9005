/**
 * A conversation's items as chat messages. What a model said in a row (thoughts, text, calls) is one assistant message; what others say until it speaks again is
 * a turn: first one tool message for each of its calls, then everything else. A turn that has been answered never changes when items are added, so that the
 * messages of a request are the beginning of the next request's.
 *
 * - System and developer turns before anything else are one system message; later ones follow `systemTurns`.
 * - A call without a result gets a tool message that says so. A result without a call, a second one, or one that comes too late is text of the user.
 * - A tool message is text: images of a result are shown in the user message behind it.
 * - Empty text is left out, and so is a message of nothing but white space.
 */
import type { ChatMessage, ChatToolCall, ContentPart } from '../../engines/chat-message.ts';
import type { ConversationItem, InputPart } from './conversation.ts';
import { customArguments } from './custom-input.ts';
import type { ToolNames } from './tool-names.ts';

export interface MessageRules {
  /**
   * System and developer turns in the middle: text of the user in `<system>` tags, system messages where they stand, or moved into the first message. The
   * last one changes what stands before, so that prompts are no longer append-only.
   */
  readonly systemTurns: 'positional-user' | 'positional-system' | 'hoist';
  /** What the upstream calls an assistant's thoughts; null = they are left out. */
  readonly reasoningField: 'reasoning_content' | 'reasoning' | null;
}

/** Before the text of a result that is an error: chat has no field for it. */
export const errorPrefix = '[error] ';
export const missingResult = '[no result: the call was interrupted]';
const separator = '\n\n';

type SaidItem = Exclude<ConversationItem, { readonly kind: 'tool-result' }>;
type ToolCallItem = Extract<ConversationItem, { readonly kind: 'tool-call' }>;
type ToolResultItem = Extract<ConversationItem, { readonly kind: 'tool-result' }>;

export function chatMessages(
  items: readonly ConversationItem[],
  names: ToolNames,
  rules: MessageRules,
): readonly ChatMessage[] {
  const messages = new ChatMessages(names, rules);
  for (const item of items) messages.add(item);
  return messages.end();
}

class ChatMessages {
  readonly #names: ToolNames;
  readonly #rules: MessageRules;
  readonly #leading: string[] = [];
  readonly #messages: ChatMessage[] = [];
  /** What the model says now. */
  #said: SaidItem[] = [];
  /** Its calls of before, whose turn it is. */
  #calls: readonly ToolCallItem[] = [];
  #results: ToolResultItem[] = [];
  /** Parts of the turn's user message, and system messages between them. */
  #rest: (InputPart | ChatMessage)[] = [];
  #hasBegun = false;

  constructor(names: ToolNames, rules: MessageRules) {
    this.#names = names;
    this.#rules = rules;
  }

  add(item: ConversationItem): void {
    switch (item.kind) {
      case 'reasoning':
      case 'tool-call':
        this.#say(item);
        break;
      case 'tool-result':
        this.#endSaid();
        this.#results.push(item);
        break;
      case 'message':
        if (item.role === 'assistant') this.#say(item);
        else if (item.role === 'user') this.#addUser(item.parts);
        else this.#addSystem(textOf(item.parts, separator));
        return;
    }
    this.#hasBegun = true;
  }

  end(): readonly ChatMessage[] {
    this.#endSaid();
    this.#endTurn();
    const content = this.#leading.join(separator);
    return content === '' ? this.#messages : [{ role: 'system', content }, ...this.#messages];
  }

  #say(item: SaidItem): void {
    if (this.#said.length === 0) this.#endTurn();
    this.#said.push(item);
    this.#hasBegun = true;
  }

  #addUser(parts: readonly InputPart[]): void {
    this.#endSaid();
    // One by one: there may be more of them than a call has room for.
    for (const part of parts) this.#rest.push(part);
    this.#hasBegun = true;
  }

  #addSystem(text: string): void {
    const { systemTurns } = this.#rules;
    if (!this.#hasBegun || systemTurns === 'hoist') {
      if (text !== '') this.#leading.push(text);
      return;
    }
    this.#endSaid();
    if (text === '') return;
    this.#rest.push(
      systemTurns === 'positional-system'
        ? { role: 'system', content: text }
        : { type: 'text', text: `<system>\n${text}\n</system>` },
    );
  }

  /** What was said becomes a message; its calls wait for their results. */
  #endSaid(): void {
    if (this.#said.length === 0) return;
    this.#calls = this.#said.filter((item) => item.kind === 'tool-call');
    const message = this.#assistantMessage(this.#said);
    if (message !== null) this.#messages.push(message);
    this.#said = [];
  }

  #assistantMessage(said: readonly SaidItem[]): ChatMessage | null {
    const { reasoningField } = this.#rules;
    const thoughts = said.map((item) => (item.kind === 'reasoning' ? item.text : '')).join('');
    // As sampled: a text that a call cut in two was one.
    const text = said
      .map((item) => (item.kind === 'message' ? textOf(item.parts, '') : ''))
      .join('');
    const calls = this.#calls.map((call) => this.#chatCall(call));
    const reasoning =
      reasoningField === null || thoughts === '' ? {} : { [reasoningField]: thoughts };
    const hasMore = calls.length > 0 || Object.keys(reasoning).length > 0;
    if (text.trim() === '' && !hasMore) return null;
    return {
      role: 'assistant',
      content: text === '' && calls.length > 0 ? null : text,
      ...reasoning,
      ...(calls.length > 0 && { tool_calls: calls }),
    };
  }

  #chatCall({ callId, tool, form, arguments: sampled }: ToolCallItem): ChatToolCall {
    return {
      id: callId,
      type: 'function',
      function: {
        name: this.#names.upstream(tool),
        arguments: form === 'custom' ? customArguments(sampled) : sampled,
      },
    };
  }

  #endTurn(): void {
    const waiting = Map.groupBy(this.#results.toReversed(), ({ callId }) => callId);
    const strays = new Set(this.#results);
    const shown: InputPart[] = [];
    for (const { callId } of this.#calls) {
      // The first of them that no call has taken.
      const result = waiting.get(callId)?.pop();
      if (result !== undefined) strays.delete(result);
      const content = result === undefined ? missingResult : resultText(result);
      this.#messages.push({ role: 'tool', tool_call_id: callId, content });
      if (result !== undefined) for (const part of imagesOf(result)) shown.push(part);
    }
    this.#pushRest([...shown, ...[...strays].flatMap(strayParts), ...this.#rest]);
    this.#calls = [];
    this.#results = [];
    this.#rest = [];
  }

  #pushRest(rest: readonly (InputPart | ChatMessage)[]): void {
    let parts: InputPart[] = [];
    const flush = (): void => {
      const content = userContent(parts);
      if (content !== null) this.#messages.push({ role: 'user', content });
      parts = [];
    };
    for (const each of rest)
      if ('role' in each) {
        flush();
        this.#messages.push(each);
      } else parts.push(each);
    flush();
  }
}

function resultText({ parts, isError }: ToolResultItem): string {
  const images = parts.filter((part) => part.type === 'image').length;
  const text = textOf(parts, separator);
  const note = images === 0 ? '' : `[${images} image(s), shown in the next message]`;
  return (isError ? errorPrefix : '') + [text, note].filter((each) => each !== '').join(separator);
}

function imagesOf({ callId, parts }: ToolResultItem): readonly InputPart[] {
  const images = parts.filter((part) => part.type === 'image');
  return images.length === 0
    ? []
    : [{ type: 'text', text: `[image(s) of the result of ${callId}]` }, ...images];
}

function strayParts(result: ToolResultItem): readonly InputPart[] {
  const { callId, parts, isError } = result;
  const text = textOf(parts, separator);
  const head = `[result of ${callId}, which is no open call]`;
  return [
    { type: 'text', text: `${head}\n${isError ? errorPrefix : ''}${text}` },
    ...parts.filter((part) => part.type === 'image'),
  ];
}

/** Text alone as a string, which every template takes. null = nothing is said. */
function userContent(parts: readonly InputPart[]): string | readonly ContentPart[] | null {
  const full = parts.filter((part) => part.type === 'image' || part.text !== '');
  if (full.every((part) => part.type === 'text')) {
    const text = textOf(full, separator);
    return text.trim() === '' ? null : text;
  }
  return full.map((part) =>
    part.type === 'text'
      ? { type: 'text', text: part.text }
      : { type: 'image_url', image_url: { url: part.url } },
  );
}

function textOf(parts: readonly InputPart[], between: string): string {
  return parts
    .flatMap((part) => (part.type === 'text' && part.text !== '' ? [part.text] : []))
    .join(between);
}
