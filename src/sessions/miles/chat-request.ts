/** A chat request to a session, and what the engine is asked instead: all members that the session does not set stay as they are spelled. */
import { isUtf8 } from 'node:buffer';
import { messageOf } from '../../core/errors.ts';
import { membersOf, valueOf } from '../../core/json-members.ts';
import { jsonShape } from '../../core/json-shape.ts';
import type { ChatMessage, ToolDefinition } from '../../engines/chat-message.ts';
import type { ChatCodec, Conversation } from '../codec.ts';
import { isObject, type Message } from './message-matcher.ts';
import { refusal } from './session-error.ts';

export interface ChatRequest {
  readonly messages: readonly Message[];
  /** As they are spelled. */
  readonly messagesText: string;
  readonly tools: readonly ToolDefinition[];
  readonly toolsText: string | null;
  readonly templateVariables: Readonly<Record<string, unknown>>;
  readonly isStreaming: boolean;
  /** Members for the engine, as JSON, without messages and ids. */
  readonly members: readonly Member[];
}

/** `"name":value` */
export type Member = string;

export interface RequestRules {
  /** For the template, below what a request says. */
  readonly templateVariables: Readonly<Record<string, unknown>>;
  /** Which no request may set to something else. */
  readonly fixedVariables: Readonly<Record<string, unknown>>;
  /** As the engine is told them. */
  readonly engineVariables: ChatCodec['engineVariables'];
}

/** Deeper, and what reads the messages would run out of stack. */
const maxDepth = 400;
/** The first that stands in a request decides for all of a group. */
const aliases: readonly (readonly string[])[] = [['thinking_mode', 'enable_thinking', 'thinking']];

const forced: Readonly<Record<string, unknown>> = {
  logprobs: true,
  return_meta_info: true,
  no_stop_trim: false,
};
const replaced = new Set([
  ...['stream', 'stream_options', 'messages', 'input_ids', 'chat_template_kwargs'],
  ...Object.keys(forced),
]);

/** SESSION_REQUEST_INVALID. */
export function readChatRequest(body: Buffer, rules: RequestRules): ChatRequest {
  const text = body.toString('utf8');
  const fields = readObject(body, text);
  const messages = messagesOf(fields['messages']);
  const members = new Map(membersOf(text).map((member) => [member.name, valueOf(text, member)]));
  const tools = fields['tools'] ?? null;
  if (tools !== null && !(Array.isArray(tools) && tools.every(isObject)))
    throw wrong('tools must be a list of objects', 'tools');
  const asked = variablesOf(fields['chat_template_kwargs'] ?? null, rules);
  const templateVariables = rules.engineVariables(asked);
  const hasVariables = Object.keys(templateVariables).length > 0;
  return {
    messages,
    messagesText: members.get('messages') ?? '[]',
    tools: (tools ?? []) as unknown as readonly ToolDefinition[],
    toolsText: tools === null ? null : (members.get('tools') ?? null),
    templateVariables,
    isStreaming: fields['stream'] === true,
    members: [
      ...[...members]
        .filter(([name]) => !replaced.has(name))
        .map(([name, value]) => member(name, value)),
      ...Object.entries(forced).map(([name, value]) => member(name, JSON.stringify(value))),
      ...(hasVariables ? [member('chat_template_kwargs', JSON.stringify(templateVariables))] : []),
    ],
  };
}

/** The same request, asking the engine for more: what it says of these fields itself does not count. */
export function withFields(
  request: ChatRequest,
  fields: Readonly<Record<string, unknown>>,
): ChatRequest {
  const added = Object.entries(fields);
  if (added.length === 0) return request;
  const names = added.map(([name]) => `${JSON.stringify(name)}:`);
  const kept = request.members.filter((own) => !names.some((name) => own.startsWith(name)));
  const members = added.map(([name, value]) => member(name, JSON.stringify(value)));
  return { ...request, members: [...kept, ...members] };
}

/** What goes to the engine. */
export function requestBody(
  members: readonly Member[],
  messagesText: string,
  promptIds: Int32Array,
): string {
  const ids = `[${promptIds.join(',')}]`;
  return `{${[member('messages', messagesText), ...members, member('input_ids', ids)].join(',')}}`;
}

export function conversationOf(
  messages: readonly Message[],
  request: Pick<ChatRequest, 'tools' | 'toolsText' | 'templateVariables'>,
): Conversation {
  const { tools, toolsText, templateVariables } = request;
  return {
    ...{ messages: messages as unknown as readonly ChatMessage[], tools, templateVariables },
    ...(toolsText !== null && { toolsText }),
  };
}

function readObject(body: Buffer, text: string): Readonly<Record<string, unknown>> {
  let value: unknown;
  try {
    if (!isUtf8(body)) throw new Error('it is not UTF-8');
    value = JSON.parse(text);
  } catch (error) {
    throw refusal('SESSION_REQUEST_INVALID', `invalid JSON body: ${messageOf(error)}`);
  }
  if (!isObject(value)) throw wrong('the request body must be a JSON object');
  if (jsonShape(body).depth > maxDepth) throw wrong('the request body is nested too deeply');
  return value;
}

function messagesOf(value: unknown): readonly Message[] {
  if (!Array.isArray(value)) throw wrong('messages must be a list', 'messages');
  for (const [at, message] of (value as unknown[]).entries())
    if (!isObject(message) || typeof message['role'] !== 'string')
      throw wrong(`messages.${at} must be an object with a role`, `messages.${at}`);
  return value as readonly Message[];
}

function variablesOf(given: unknown, rules: RequestRules): Readonly<Record<string, unknown>> {
  if (given !== null && !isObject(given))
    throw wrong('chat_template_kwargs must be an object', 'chat_template_kwargs');
  const own = given ?? {};
  const isReplaced = (name: string): boolean =>
    aliases.some(
      (group) => group.includes(name) && group.some((alias) => Object.hasOwn(own, alias)),
    );
  const launch = Object.entries(rules.templateVariables).filter(([name]) => !isReplaced(name));
  for (const [name, fixed] of Object.entries(rules.fixedVariables))
    if (Object.hasOwn(own, name) && JSON.stringify(own[name]) !== JSON.stringify(fixed))
      throw wrong(
        `chat_template_kwargs.${name} is fixed to ${JSON.stringify(fixed)} by the family of the model`,
        `chat_template_kwargs.${name}`,
      );
  return { ...Object.fromEntries(launch), ...own, ...rules.fixedVariables };
}

const member = (name: string, value: string): Member => `${JSON.stringify(name)}:${value}`;

const wrong = (message: string, field?: string): Error =>
  refusal('SESSION_REQUEST_INVALID', message, field === undefined ? {} : { field });
