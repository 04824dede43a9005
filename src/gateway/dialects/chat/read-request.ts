/** A request of chat completions. Its messages and tools are the upstream's own: they go to the template as they are spelled. */
import { z } from 'zod';
import { membersOf, valueOf } from '../../../core/json-members.ts';
import type { ChatMessage, ToolDefinition } from '../../../engines/chat-message.ts';
import type { SamplingParams } from '../../../engines/engine.ts';
import { present } from '../../../engines/shared/chat-request.ts';
import { listOf, recordOf, textOf, type JsonRecord } from '../../../engines/shared/json.ts';
import { RequestProblem, type ReadRequest } from '../dialect.ts';

export interface ChatExtra {
  /** A stream tells its usage in an event of its own. */
  readonly showsUsage: boolean;
}

const number = z.number().nullish();
const count = z.int().min(1).nullish();
const flag = z.boolean().nullish();
const record = z.record(z.string(), z.unknown());
const roles = ['system', 'developer', 'user', 'assistant', 'tool'] as const;

const requestSchema = z.looseObject({
  model: z.string().nullish(),
  messages: z.array(
    z.looseObject({
      role: z.enum(roles),
      content: z.union([z.string(), z.array(z.looseObject({ type: z.string() }))]).nullish(),
      tool_calls: z
        .array(
          z.looseObject({
            id: z.string(),
            function: z.looseObject({ name: z.string(), arguments: z.string() }),
          }),
        )
        .nullish(),
    }),
  ),
  tools: z.array(z.looseObject({ function: z.looseObject({ name: z.string() }) })).nullish(),
  stream: flag,
  stream_options: z.looseObject({ include_usage: flag }).nullish(),
  n: z.literal(1, { error: 'only one choice is sampled' }).nullish(),
  max_tokens: count,
  max_completion_tokens: count,
  temperature: number,
  top_p: number,
  top_k: z.int().nullish(),
  min_p: number,
  stop: z.union([z.string(), z.array(z.string())]).nullish(),
  stop_token_ids: z.array(z.int().min(0)).nullish(),
  seed: z.int().nullish(),
  frequency_penalty: number,
  presence_penalty: number,
  chat_template_kwargs: record.nullish(),
  response_format: record.nullish(),
});
type Given = z.output<typeof requestSchema>;

/** Go on as they are. */
const further = [
  ...['tool_choice', 'chat_template_kwargs', 'response_format', 'repetition_penalty'],
  ...['logit_bias', 'ignore_eos', 'min_tokens'],
];
/** Mean nothing here, or are about the client and its account. */
const silent = [
  ...['parallel_tool_calls', 'reasoning_effort', 'user', 'store', 'metadata', 'service_tier'],
  ...['safety_identifier', 'prompt_cache_key', 'tool_stream'],
];
/** Would make another prompt, or bind the answer. */
const refused = [
  ...['functions', 'function_call', 'continue_final_message', 'chat_template', 'documents'],
  ...['guided_json', 'guided_regex', 'guided_choice', 'guided_grammar', 'structured_outputs'],
  ...['regex', 'ebnf'],
];
const known = new Set([...Object.keys(requestSchema.shape), ...further, ...silent]);

/** Throws `RequestProblem`. */
export function readRequest(body: unknown, text = '{}'): ReadRequest<ChatExtra> {
  const document = recordOf(body);
  if (document === null) throw new RequestProblem('the body must be a JSON object');
  const read = requestSchema.safeParse(document);
  if (!read.success) throw problemOf(read.error);
  const given = read.data;
  if (given.messages.length === 0)
    throw new RequestProblem('there must be at least one message', { field: 'messages' });
  const unkept = refused.find((name) => isSaid(document[name]));
  if (unkept !== undefined)
    throw new RequestProblem(
      `${unkept} cannot be kept here: the prompt is made of ids; leave it away`,
      { field: unkept },
    );
  const sampling = samplingOf(given);
  const tools = (given.tools ?? []) as unknown as readonly ToolDefinition[];
  return {
    conversation: {
      ...{ model: given.model ?? null, items: [], tools: [], toolChoice: null, sampling },
      ...{ allowsParallelToolCalls: null, format: null, reasoningEffort: null },
      isStreaming: given.stream === true,
    },
    asked: {
      input: {
        kind: 'messages',
        messages: given.messages.map((message) => messageOf(message)),
        ...(tools.length > 0 && { tools, ...spelledTools(text) }),
      },
      sampling,
      extraBody: furtherOf(document),
    },
    extra: { showsUsage: given.stream_options?.include_usage === true },
    notes: Object.keys(document)
      .filter((name) => !known.has(name) && isSaid(document[name]))
      .map((name) => `${name} is left out`),
  };
}

function samplingOf(given: Given): SamplingParams {
  const { stop, max_completion_tokens: newer, max_tokens: older } = given;
  return present({
    maxTokens: newer ?? older ?? undefined,
    temperature: given.temperature ?? undefined,
    topP: given.top_p ?? undefined,
    topK: given.top_k ?? undefined,
    minP: given.min_p ?? undefined,
    stop: stop === undefined || stop === null ? undefined : (listOf(stop) ?? [stop]),
    stopTokenIds: given.stop_token_ids ?? undefined,
    seed: given.seed ?? undefined,
    frequencyPenalty: given.frequency_penalty ?? undefined,
    presencePenalty: given.presence_penalty ?? undefined,
  });
}

function furtherOf(document: JsonRecord): JsonRecord {
  return present(Object.fromEntries(further.map((name) => [name, document[name] ?? undefined])));
}

/** A parse has lost which whole numbers were fractions. */
function spelledTools(text: string): { readonly toolsText?: string } {
  const member = membersOf(text).findLast(({ name }) => name === 'tools');
  return member === undefined ? {} : { toolsText: valueOf(text, member) };
}

/** One part of text is a text: so clients send back what they got as one. */
function messageOf(message: JsonRecord): ChatMessage {
  const [part, ...others] = listOf(message['content']) ?? [];
  const text = others.length === 0 ? textOf(recordOf(part)?.['text']) : null;
  return (text === null ? message : { ...message, content: text }) as unknown as ChatMessage; // as the schema has it
}

function isSaid(value: unknown): boolean {
  return value !== undefined && value !== null && value !== false && listOf(value)?.length !== 0;
}

function problemOf(error: z.ZodError): RequestProblem {
  const [issue] = error.issues;
  const field = (issue?.path ?? []).map(String).join('.');
  return new RequestProblem(`${field}: ${issue?.message ?? 'is not valid'}`, { field });
}
