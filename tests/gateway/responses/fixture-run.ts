/** What the fixtures of the dialect hold, and how they are carried out: chat chunks go through the upstream's own reader, the items and the writer. */
import { ChatReader } from '../../../src/engines/shared/chat-reader.ts';
import type { GenerateRequest } from '../../../src/engines/engine.ts';
import type {
  AnswerWriter,
  DialectProblem,
  ReadRequest,
  SentEvent,
} from '../../../src/gateway/dialects/dialect.ts';
import type { ResponsesExtra } from '../../../src/gateway/dialects/responses/echo.ts';
import { inputOf } from '../../../src/gateway/dialects/responses/input-of.ts';
import { responsesDialect } from '../../../src/gateway/dialects/responses/responses-dialect.ts';
import { AnswerItems } from '../../../src/gateway/items/answer-items.ts';
import type { Answer, AnswerEvent } from '../../../src/gateway/items/answer.ts';
import { chatRequest } from '../../../src/gateway/items/chat-request.ts';
import { ToolNames } from '../../../src/gateway/items/tool-names.ts';
import type { GoldenCase } from '../golden.ts';

export type JsonObject = Readonly<Record<string, unknown>>;

interface WithBody extends GoldenCase {
  readonly body: JsonObject;
}

export interface RequestCase extends WithBody {
  readonly direction: 'request';
  /** A response that was given before: its output stands before the body's own input. */
  readonly previous?: JsonObject;
  readonly chat: JsonObject;
  readonly notes?: readonly string[];
}

export interface StreamCase extends WithBody {
  readonly direction: 'stream';
  /** Chunks of the upstream. */
  readonly chunks: readonly JsonObject[];
  /** A sign of life after so many chunks. */
  readonly keepAliveAfter?: number;
  /** What happened instead of an end. */
  readonly problem?: DialectProblem;
  /** Their responses lack the fields that merely repeat the request. */
  readonly events: readonly JsonObject[];
}

export interface WholeCase extends WithBody {
  readonly direction: 'whole';
  /** The upstream's chat completion. */
  readonly completion: JsonObject;
  readonly response: JsonObject;
}

export interface ErrorCase extends GoldenCase {
  readonly direction: 'error';
  /** The request that is refused, or what went wrong elsewhere. */
  readonly body?: JsonObject;
  readonly problem?: DialectProblem;
  readonly status: number;
  readonly answer: JsonObject;
  readonly headers?: Readonly<Record<string, string>>;
}

export type ResponsesCase = RequestCase | StreamCase | WholeCase | ErrorCase;

export const head = {
  requestId: 'r1',
  model: 'mock-model',
  createdAt: new Date('2026-01-01T00:00:00.500Z'),
};

/** What a response says of a request that says nothing. */
export const silentEcho: JsonObject = {
  background: false,
  instructions: null,
  max_output_tokens: null,
  max_tool_calls: null,
  metadata: {},
  parallel_tool_calls: true,
  previous_response_id: null,
  prompt_cache_key: null,
  reasoning: { effort: null, summary: null },
  safety_identifier: null,
  service_tier: 'default',
  store: true,
  temperature: null,
  text: { format: { type: 'text' } },
  tool_choice: 'auto',
  tools: [],
  top_logprobs: 0,
  top_p: null,
  truncation: 'disabled',
  user: null,
};

export function readWithChat(body: JsonObject, previous?: JsonObject): ChatRun {
  const input = body['input'];
  const whole =
    previous === undefined
      ? body
      : { ...body, input: [...inputOf(previous), ...(input as readonly unknown[])] };
  const read = responsesDialect.read(whole);
  const names = new ToolNames(read.conversation.tools);
  const { input: asked, sampling, extraBody } = chatRequest(read.conversation, names);
  const { kind, ...messages } = asked;
  return { read, names, chat: { ...messages, ...sampling, ...extraBody }, kind };
}

export interface ChatRun {
  readonly read: ReadRequest<ResponsesExtra>;
  readonly names: ToolNames;
  readonly chat: JsonObject;
  readonly kind: string;
}

export interface Streamed {
  readonly sent: readonly SentEvent[];
  /** null = it failed. */
  readonly answer: Answer | null;
  /** A writer of the same request that has written nothing. */
  readonly fresh: AnswerWriter;
}

export function runStream({ body, chunks, keepAliveAfter, problem }: StreamCase): Streamed {
  const { read, names } = readWithChat(body);
  const writer = responsesDialect.writer(head, read.extra);
  const items = new AnswerItems(names);
  const reader = readerOf(read);
  const sent: SentEvent[] = [...writer.start()];
  let answer: Answer | null = null;
  const write = (events: readonly AnswerEvent[]): void => {
    for (const event of events) {
      sent.push(...writer.write(event));
      if (event.type === 'end') answer = event.answer;
    }
  };
  for (const [index, chunk] of chunks.entries()) {
    for (const part of reader.event(chunk)) write(items.push(part));
    if (index + 1 === keepAliveAfter) sent.push(...writer.keepAlive());
  }
  if (problem === undefined) for (const part of reader.end() ?? []) write(items.push(part));
  else sent.push(...writer.fail(problem));
  return { sent, answer, fresh: responsesDialect.writer(head, read.extra) };
}

export function runWhole({ body, completion }: WholeCase): JsonObject {
  const { read, names } = readWithChat(body);
  const items = new AnswerItems(names);
  const writer = responsesDialect.writer(head, read.extra);
  const events = readerOf(read)
    .whole(completion)
    .flatMap((part) => items.push(part));
  const last = events.at(-1);
  if (last?.type !== 'end') throw new Error('the completion has no end');
  return writer.whole(last.answer);
}

function readerOf({ conversation }: ReadRequest<ResponsesExtra>): ChatReader {
  const request: GenerateRequest = {
    requestId: head.requestId,
    model: conversation.model,
    input: { kind: 'messages', messages: [] },
    sampling: conversation.sampling,
    isStreaming: conversation.isStreaming,
    wantsTokens: false,
  };
  return new ChatReader(request, { url: 'http://engine', requestId: null, secrets: [] });
}
