/** The items of `input`, in the client's order. An item that is not known is refused by name: leaving it out would change what the model is told. */
import { RequestProblem } from '../dialect.ts';
import type { ConversationItem, InputPart } from '../../items/conversation.ts';
import { openReasoning } from './reasoning-carrier.ts';
import { plainNamespace, type DeclaredTools } from './read-tools.ts';
import {
  callOutputSchema,
  customCallSchema,
  functionCallSchema,
  messageSchema,
  reasoningSchema,
  shaped,
} from './request-shape.ts';

/** Why some items cannot be taken, and what to do instead. */
const refusals: Readonly<Record<string, string>> = {
  item_reference: 'items are not kept by id: send the item itself',
  compaction_trigger: 'the history is not compacted here: the client has to summarise it',
  compaction: 'a compacted history of another server cannot be read: send the items themselves',
};

export function readInput(input: unknown, tools: DeclaredTools): readonly ConversationItem[] {
  if (typeof input === 'string') return [message('user', [{ type: 'text', text: input }])];
  if (!Array.isArray(input))
    throw new RequestProblem('input: a text or a list of items is needed', { field: 'input' });
  return (input as readonly unknown[]).flatMap((item, index) =>
    readItem(item, `input[${index}]`, tools),
  );
}

function readItem(item: unknown, at: string, tools: DeclaredTools): readonly ConversationItem[] {
  if (!isObject(item)) throw problem(at, 'an item is an object');
  // Messages may leave out their type.
  const type = item['type'] ?? 'message';
  switch (type) {
    case 'message': {
      const { role, content } = shaped(messageSchema, item, at);
      return [message(role, readParts(content, `${at}.content`))];
    }
    case 'reasoning':
      return readReasoning(item, at);
    case 'function_call': {
      const call = shaped(functionCallSchema, item, at);
      return [toolCall(call, { form: 'function', arguments: call.arguments })];
    }
    case 'custom_tool_call': {
      const call = shaped(customCallSchema, item, at);
      return [toolCall(call, { form: 'custom', arguments: call.input })];
    }
    case 'function_call_output':
    case 'custom_tool_call_output': {
      const { call_id: callId, output } = shaped(callOutputSchema, item, at);
      const parts = readParts(output ?? [], `${at}.output`);
      return [{ kind: 'tool-result', callId, parts, isError: false }];
    }
    case 'additional_tools':
      if (!Array.isArray(item['tools'])) throw problem(`${at}.tools`, 'a list of tools is needed');
      tools.declare(item['tools'], `${at}.tools`);
      return [];
    default: {
      const known = typeof type === 'string' ? refusals[type] : undefined;
      throw problem(
        `${at}.type`,
        known ?? `items of type ${JSON.stringify(type)} cannot be taken into a conversation`,
      );
    }
  }
}

function message(
  role: 'system' | 'developer' | 'user' | 'assistant',
  parts: readonly InputPart[],
): ConversationItem {
  return { kind: 'message', role, parts };
}

function toolCall(
  call: {
    readonly call_id: string;
    readonly name: string;
    readonly namespace?: string | null | undefined;
  },
  sampled: { readonly form: 'function' | 'custom'; readonly arguments: string },
): ConversationItem {
  const tool = { name: call.name, namespace: plainNamespace(call.namespace) };
  return { kind: 'tool-call', callId: call.call_id, tool, ...sampled };
}

/** Our own carrier holds the text as it was sampled; without it the content counts, then the summary. */
function readReasoning(item: object, at: string): readonly ConversationItem[] {
  const { summary, content, encrypted_content: carrier } = shaped(reasoningSchema, item, at);
  const said = joined(content) ?? joined(summary);
  const own = typeof carrier === 'string' ? openReasoning(carrier) : null;
  if (own !== null) return [{ kind: 'reasoning', text: own, opaque: null }];
  const opaque = carrier ?? null;
  if (said === null && opaque === null) return [];
  return [{ kind: 'reasoning', text: said ?? '', opaque }];
}

function joined(pieces: readonly { readonly text: string }[] | null | undefined): string | null {
  const text = (pieces ?? []).map((piece) => piece.text).join('\n\n');
  return text === '' ? null : text;
}

function readParts(content: string | readonly unknown[], at: string): readonly InputPart[] {
  if (typeof content === 'string') return [{ type: 'text', text: content }];
  return content.map((part, index) => readPart(part, `${at}[${index}]`));
}

function readPart(part: unknown, at: string): InputPart {
  if (!isObject(part)) throw problem(at, 'a part is an object');
  const { type } = part;
  switch (type) {
    case 'input_text':
    case 'output_text':
    case 'text':
    case 'summary_text':
    case 'reasoning_text':
      return { type: 'text', text: textIn(part, 'text', at) };
    case 'refusal':
      return { type: 'text', text: textIn(part, 'refusal', at) };
    case 'input_image':
      return { type: 'image', url: imageUrl(part, at) };
    default:
      throw problem(
        `${at}.type`,
        `parts of type ${JSON.stringify(type)} cannot be shown to the model`,
      );
  }
}

function textIn(part: JsonObject, key: string, at: string): string {
  const text = part[key];
  if (typeof text !== 'string') throw problem(`${at}.${key}`, 'a text is needed');
  return text;
}

function imageUrl(part: JsonObject, at: string): string {
  const { image_url: image } = part;
  const url = isObject(image) ? image['url'] : image;
  if (typeof url === 'string' && /^(https?:\/\/|data:image\/)/i.test(url)) return url;
  if (typeof part['file_id'] === 'string')
    throw problem(`${at}.file_id`, 'files are not kept here: send the image as a data URL');
  throw problem(`${at}.image_url`, 'an http(s) address or a data URL of an image is needed');
}

type JsonObject = Readonly<Record<string, unknown>>;

function isObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function problem(field: string, message: string): RequestProblem {
  return new RequestProblem(`${field}: ${message}`, { field });
}
