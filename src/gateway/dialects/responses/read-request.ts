/** A request of the Responses API as a conversation. What would change the answer and cannot be honoured is refused by name; what cannot change it is accepted. */
import { RequestProblem, type ReadRequest } from '../dialect.ts';
import type { AnswerFormat, Conversation } from '../../items/conversation.ts';
import type { SamplingParams } from '../../../engines/engine.ts';
import { echoOf, type ResponsesExtra } from './echo.ts';
import { readInput } from './read-input.ts';
import { DeclaredTools, readToolChoice } from './read-tools.ts';
import { formatSchema, requestSchema, shaped, type RequestFields } from './request-shape.ts';

/** What can only be included where the vendor's own tools ran: nothing to leave out. */
const emptyIncludes =
  /^(file_search_call|web_search_call|code_interpreter_call|computer_call_output|message\.input_image)\./;

export function readRequest(body: unknown): ReadRequest<ResponsesExtra> {
  const fields = shaped(requestSchema, body, '');
  refuseUnhonoured(fields);
  const notes: string[] = [];
  const declared = new DeclaredTools(notes);
  declared.declare(fields.tools ?? [], 'tools');
  const items = readInput(fields.input, declared);
  const { toolChoice, tools } = readToolChoice(fields.tool_choice, declared.specs);
  const conversation: Conversation = {
    model: fields.model ?? null,
    items: [...instructionsOf(fields), ...items],
    tools,
    toolChoice,
    allowsParallelToolCalls: tools.length === 0 ? null : (fields.parallel_tool_calls ?? null),
    sampling: samplingOf(fields),
    format: formatOf(fields),
    reasoningEffort: fields.reasoning?.effort ?? null,
    isStreaming: fields.stream ?? false,
  };
  notes.push(...leftOut(fields, body));
  return { conversation, extra: extraOf(fields), notes: [...new Set(notes)] };
}

function extraOf(fields: RequestFields): ResponsesExtra {
  return {
    echo: echoOf(fields),
    wantsReasoningCarrier: fields.include?.includes('reasoning.encrypted_content') ?? false,
  };
}

function refuseUnhonoured(fields: RequestFields): void {
  const { background, conversation, prompt, include } = fields;
  if (background === true) throw refused('background', 'answers are not made in the background');
  if (isSet(conversation))
    throw refused('conversation', 'conversations are not kept: use previous_response_id or input');
  if (isSet(prompt)) throw refused('prompt', 'prompts are not kept: send input and instructions');
  const logprobs = 'log-probabilities are not part of these answers';
  if ((fields.top_logprobs ?? 0) > 0) throw refused('top_logprobs', logprobs);
  if (include?.includes('message.output_text.logprobs') === true)
    throw refused('include', logprobs);
}

function instructionsOf({ instructions }: RequestFields): Conversation['items'] {
  return typeof instructions === 'string' && instructions !== ''
    ? [{ kind: 'message', role: 'system', parts: [{ type: 'text', text: instructions }] }]
    : [];
}

function samplingOf(fields: RequestFields): SamplingParams {
  const { stop } = fields;
  const given = {
    maxTokens: fields.max_output_tokens,
    temperature: fields.temperature,
    topP: fields.top_p,
    topK: fields.top_k,
    minP: fields.min_p,
    seed: fields.seed,
    frequencyPenalty: fields.frequency_penalty,
    presencePenalty: fields.presence_penalty,
    stop: typeof stop === 'string' ? [stop] : stop,
  };
  return Object.fromEntries(
    Object.entries(given).filter(([, value]) => value !== undefined && value !== null),
  );
}

function formatOf({ text }: RequestFields): AnswerFormat | null {
  const given = text?.format ?? null;
  if (given === null) return null;
  const format = shaped(formatSchema, given, 'text.format');
  if (format.type === 'text') return null;
  if (format.type === 'json_object') return { kind: 'json' };
  const { name, description, schema, strict } = format;
  return {
    kind: 'schema',
    name,
    description: description ?? null,
    schema,
    isStrict: strict ?? false,
  };
}

/** A line for each field that is accepted and does nothing. */
function leftOut(fields: RequestFields, body: unknown): readonly string[] {
  const unknownFields = Object.keys(body as object)
    .filter((name) => !(name in requestSchema.shape))
    .map((name) => `the field ${name} is not known`);
  const unknownIncludes = (fields.include ?? [])
    .filter((name) => name !== 'reasoning.encrypted_content' && !emptyIncludes.test(name))
    .map((name) => `include: ${name} is not known`);
  const truncation =
    fields.truncation === 'auto' ? ['truncation: nothing is cut off by itself'] : [];
  return [...unknownFields, ...unknownIncludes, ...truncation];
}

/** Absent, null and an empty text say nothing. */
function isSet(value: unknown): boolean {
  return value !== undefined && value !== null && value !== '';
}

function refused(field: string, message: string): RequestProblem {
  return new RequestProblem(`${field}: ${message}`, { field });
}
