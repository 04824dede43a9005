/**
 * Messages and tools as templates get them from an engine: content that is absent is empty, arguments of tool calls are dictionaries (or, for some
 * families, text), tools have the fields that engines fill in.
 */
import type { ChatMessage, ToolDefinition } from '../../engines/chat-message.ts';
import { recordOf, textOf } from '../../engines/shared/json.ts';
import { dumpJson, parseJson } from '../templates/python-json.ts';
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
    else if (name === 'content') fields.set(name, plainContent(value, index));
    else if (name === 'tool_calls') fields.set(name, toolCalls(value, index, form));
    else if (name !== 'reasoning') fields.set(name, valueOf(value));
  }
  if (!fields.has('content')) fields.set('content', '');
  const { reasoning } = message;
  if (typeof reasoning === 'string' && typeof message.reasoning_content !== 'string')
    fields.set('reasoning_content', reasoning);
  return fields;
}

/** Engines join the parts of a text by a space where a template wants one text. Whoever sent the message may have put anything there. */
function plainContent(content: unknown, index: number): string {
  const field = `messages.${index}.content`;
  if (content === null) return '';
  if (typeof content === 'string') return content;
  if (!Array.isArray(content)) throw conversationError('content is no text and no list', { field });
  const texts = (content as unknown[]).map((part) => {
    const text = textOf(recordOf(part)?.['text']);
    if (text !== null) return text;
    const type = textOf(recordOf(part)?.['type']) ?? typeof part;
    throw conversationError(`a part of type '${type}' is no text`, { field });
  });
  return texts.join(' ');
}

function toolCalls(given: unknown, index: number, form: ArgumentsAs): Value {
  const field = `messages.${index}.tool_calls`;
  if (given === null) return [];
  if (!Array.isArray(given)) throw conversationError('tool_calls is no list', { field });
  return (given as unknown[]).map((one, at) => {
    const call = recordOf(one);
    const called = recordOf(call?.['function']);
    if (call === null || called === null)
      throw conversationError('a tool call has no function', { field: `${field}.${at}` });
    const fields = valueOf({ ...called, arguments: null }) as Dict;
    const place = `${field}.${at}.function.arguments`;
    fields.set('arguments', argumentsIn(called['arguments'], form, place));
    const outer = valueOf({ ...call, function: null }) as Dict;
    outer.set('function', fields);
    return outer;
  });
}

/** Some clients send arguments as the object that they spell. */
function argumentsIn(given: unknown, form: ArgumentsAs, field: string): Value {
  const object = recordOf(given);
  if (object !== null) return form === 'text' ? dumpJson(valueOf(object)) : valueOf(object);
  const text = textOf(given);
  if (text === null)
    throw conversationError('the arguments of a tool call are no text and no object', { field });
  return form === 'text' ? text : parsedArguments(text, field);
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
 * Fields in the order in which SGLang spells them, which fills in those that are absent. `source`: the tools as the request's body spells them. JavaScript's own parse of it has lost which numbers were fractions, and the order of keys that look like
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
    const definition: Dict = new Map<string, Value>([
      ...['description', 'name', 'parameters'].map((name): [string, Value] => [
        name,
        given.get(name) ?? null,
      ]),
      ['strict', given.get('strict') === true],
    ]);
    return new Map<string, Value>([
      ['type', 'function'],
      ['function', definition],
    ]);
  });
}
