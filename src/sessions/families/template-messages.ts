/**
 * Messages and tools as templates get them from an engine: content that is absent is empty, arguments of tool calls are dictionaries (or, for some
 * families, text), tools have the fields that engines fill in.
 */
import type { ChatMessage, ContentPart, ToolDefinition } from '../../engines/chat-message.ts';
import { parseJson } from '../templates/python-json.ts';
import { type Dict, isList, type Value, valueOf } from '../templates/python-values.ts';
import { conversationError } from './conversation-error.ts';

export type ArgumentsAs = 'dictionary' | 'text';

/** CONVERSATION_INVALID for what no template of a model of text can show. */
export function templateMessages(
  messages: readonly ChatMessage[],
  form: ArgumentsAs,
): readonly Dict[] {
  return messages.map((message, index) => templateMessage(message, index, form));
}

function templateMessage(message: ChatMessage, index: number, form: ArgumentsAs): Dict {
  const fields: Dict = new Map();
  for (const [name, value] of Object.entries(message)) {
    if (value === undefined) continue;
    if (name === 'role') fields.set(name, message.role === 'developer' ? 'system' : message.role);
    else if (name === 'content') fields.set(name, plainContent(message.content, index));
    else if (name === 'tool_calls') fields.set(name, toolCalls(message, index, form));
    else if (name !== 'reasoning') fields.set(name, valueOf(value));
  }
  if (!fields.has('content')) fields.set('content', '');
  const { reasoning } = message;
  if (typeof reasoning === 'string' && typeof message.reasoning_content !== 'string')
    fields.set('reasoning_content', reasoning);
  return fields;
}

/** Engines join the parts of a text by a space where a template wants one text. */
function plainContent(content: ChatMessage['content'], index: number): string {
  if (content === null) return '';
  if (typeof content === 'string') return content;
  return content.map((part) => textOfPart(part, index)).join(' ');
}

function textOfPart(part: ContentPart, index: number): string {
  if (typeof part.text === 'string') return part.text;
  throw conversationError(`a part of type '${part.type}' is no text`, {
    field: `messages.${index}.content`,
  });
}

function toolCalls(message: ChatMessage, index: number, form: ArgumentsAs): Value {
  return (message.tool_calls ?? []).map((call, at) => {
    const field = `messages.${index}.tool_calls.${at}.function.arguments`;
    const { arguments: text, ...others } = call.function;
    const fields = valueOf(others) as Dict;
    fields.set('arguments', form === 'text' ? text : parsedArguments(text, field));
    const outer = valueOf({ ...call, function: null }) as Dict;
    outer.set('function', fields);
    return outer;
  });
}

export function parsedArguments(text: string, field: string): Dict {
  let value: Value;
  try {
    value = parseJson(text);
  } catch (error) {
    throw conversationError('the arguments of a tool call are not JSON', { field, cause: error });
  }
  if (value instanceof Map) return value;
  throw conversationError('the arguments of a tool call are not an object', { field });
}

/**
 * `source`: the tools as the request's body spells them. JavaScript's own parse of it has lost which numbers were fractions, and the order of keys that look like
 * numbers.
 */
export function templateTools(
  tools: readonly ToolDefinition[],
  source: string | null,
): readonly Dict[] {
  const values = source === null ? valueOf(tools) : parseJson(source);
  return (isList(values) ? values : []).map((tool, index) => {
    const given = tool instanceof Map ? tool.get('function') : null;
    if (!(given instanceof Map) || typeof given.get('name') !== 'string')
      throw conversationError('a tool has no function with a name', { field: `tools.${index}` });
    const definition: Dict = new Map<string, Value>(
      ['name', 'description', 'parameters'].map((name) => [name, given.get(name) ?? null]),
    );
    return new Map<string, Value>([
      ['type', 'function'],
      ['function', definition],
    ]);
  });
}
