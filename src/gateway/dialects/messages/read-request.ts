/** A Messages request as a conversation. */
import type { SamplingParams } from '../../../engines/engine.ts';
import { listOf, recordOf, textOf, type JsonRecord } from '../../../engines/shared/json.ts';
import type { AnswerFormat, ConversationItem } from '../../items/conversation.ts';
import { RequestProblem, type ReadRequest } from '../dialect.ts';
import { readMessage } from './read-message.ts';
import { readSystem } from './read-system.ts';
import { GivenTools } from './read-tools.ts';
import { parsed, requestSchema, type GivenRequest } from './request-schema.ts';

export interface MessagesExtra {
  /** The client wants to read what the model thinks; else it gets it sealed in the signature. */
  readonly showsThinking: boolean;
}

/** Left out without a word: they are about the account, the cache and the place of the vendor's machines. */
const silentFields = [
  'anthropic_version',
  'anthropic_beta',
  'cache_control',
  'diagnostics',
  'inference_geo',
  'metadata',
  'service_tier',
  'speed',
  'user_profile_id',
  'workspace_id',
];
const knownFields = new Set([...Object.keys(requestSchema.shape), ...silentFields]);

/** Efforts above those that chat engines know. */
const higherEfforts = new Set(['xhigh', 'max']);

export interface ReadOptions {
  /** Nothing will be sampled: the assistant may have the last word. */
  readonly isCounted?: boolean;
}

/** Throws `RequestProblem`. */
export function readRequest(
  body: unknown,
  { isCounted = false }: ReadOptions = {},
): ReadRequest<MessagesExtra> {
  const document = recordOf(body);
  if (document === null) throw new RequestProblem('the body must be a JSON object');
  refuseElsewhere(document);
  const given = parsed(requestSchema, document, '');
  const tools = new GivenTools(given.tools ?? []);
  const items = readItems(given, tools);
  if (!isCounted) refusePrefill(given);
  const choice = given.tool_choice ?? { type: 'none-given' as const };
  const deniesParallel =
    'disable_parallel_tool_use' in choice && choice.disable_parallel_tool_use === true;
  return {
    conversation: {
      model: given.model ?? null,
      items,
      tools: tools.specs,
      toolChoice: choice.type === 'none-given' ? null : tools.choice(choice),
      allowsParallelToolCalls: deniesParallel ? false : null,
      sampling: samplingOf(given),
      format: formatOf(given),
      reasoningEffort: effortOf(given),
      isStreaming: !isCounted && given.stream === true,
    },
    extra: { showsThinking: given.thinking?.display !== 'omitted' },
    notes: [...notesOn(document, given), ...tools.notes],
  };
}

/** What lies with the vendor and not in the request: without it the answer is one to another question. */
function refuseElsewhere(document: JsonRecord): void {
  const { container, mcp_servers: servers, thread } = document;
  if (container !== undefined && container !== null)
    throw new RequestProblem('there are no containers here', { field: 'container' });
  if ((listOf(servers) ?? []).length > 0)
    throw new RequestProblem('MCP servers are not called from here; the client can call them', {
      field: 'mcp_servers',
    });
  if (textOf(recordOf(thread)?.['previous_message_id']) !== null)
    throw new RequestProblem('no messages are kept here; send the whole conversation', {
      field: 'thread.previous_message_id',
    });
}

function readItems(given: GivenRequest, tools: GivenTools): readonly ConversationItem[] {
  const { system, messages } = given;
  const leading =
    system === undefined || system === null ? [] : readSystem(system, 'system', tools);
  const said = messages.flatMap((message, index) => {
    const at = `messages.${index}`;
    return message.role === 'system'
      ? readSystem(message.content, `${at}.content`, tools)
      : readMessage({ ...message, role: message.role }, at);
  });
  if (said.every((item) => item.kind === 'message' && item.role === 'system'))
    throw new RequestProblem('there must be at least one message that says something', {
      field: 'messages',
    });
  return [...leading, ...said];
}

function refusePrefill({ messages }: GivenRequest): void {
  const last = messages.length - 1;
  if (messages[last]?.role === 'assistant')
    throw new RequestProblem(
      'the last message is the assistant’s: answers are not continued here; end with a message of the user',
      { field: `messages.${last}` },
    );
}

function samplingOf(given: GivenRequest): SamplingParams {
  const { max_tokens, temperature, top_p, top_k, stop_sequences } = given;
  const stop = (stop_sequences ?? []).filter((text) => text !== '');
  return {
    ...(typeof max_tokens === 'number' && { maxTokens: max_tokens }),
    ...(typeof temperature === 'number' && { temperature }),
    ...(typeof top_p === 'number' && { topP: top_p }),
    ...(typeof top_k === 'number' && { topK: top_k }),
    ...(stop.length > 0 && { stop }),
  };
}

function formatOf({ output_config, output_format }: GivenRequest): AnswerFormat | null {
  const format = output_config?.format ?? output_format ?? null;
  if (format === null) return null;
  return {
    kind: 'schema',
    name: format.name ?? 'answer',
    description: format.description ?? null,
    schema: format.schema,
    isStrict: format.strict ?? false,
  };
}

function effortOf({ output_config }: GivenRequest): string | null {
  const effort = output_config?.effort ?? null;
  return effort !== null && higherEfforts.has(effort) ? 'high' : effort;
}

function notesOn(document: JsonRecord, given: GivenRequest): readonly string[] {
  const notes = Object.entries(document)
    .filter(([name, value]) => !knownFields.has(name) && value !== null)
    .map(([name]) => `the field ${name} is left out`);
  const effort = given.output_config?.effort;
  if (typeof effort === 'string' && higherEfforts.has(effort))
    notes.push(`the effort ${effort} is passed on as high`);
  if (given.thinking?.type === 'disabled')
    notes.push('thinking is not switched off: whether the model thinks is for its template to say');
  if (given.messages.some(({ output_config }) => output_config !== undefined))
    notes.push('the field output_config of single messages is left out');
  return notes;
}
