/** What the fixtures of the dialect `messages` hold, and what the real parts make of them. */
import { engineError } from '../../../src/engines/shared/answer-error.ts';
import { chatBody } from '../../../src/engines/shared/chat-request.ts';
import { ChatReader } from '../../../src/engines/shared/chat-reader.ts';
import type { ModelPart } from '../../../src/engines/model-call.ts';
import { RequestProblem } from '../../../src/gateway/dialects/dialect.ts';
import type {
  AnswerWriter,
  DialectProblem,
  SentEvent,
} from '../../../src/gateway/dialects/dialect.ts';
import { messagesDialect } from '../../../src/gateway/dialects/messages/messages-dialect.ts';
import { AnswerItems } from '../../../src/gateway/items/answer-items.ts';
import type { Answer } from '../../../src/gateway/items/answer.ts';
import { chatRequest, type UpstreamRules } from '../../../src/gateway/items/chat-request.ts';
import type { ConversationItem } from '../../../src/gateway/items/conversation.ts';
import { ToolNames } from '../../../src/gateway/items/tool-names.ts';
import { callProblem } from '../../../src/gateway/problems.ts';
import type { GoldenCase } from '../golden.ts';

type Json = Readonly<Record<string, unknown>>;

/** A request, and the chat request that it becomes or the refusal that it gets. */
export interface RequestCase extends GoldenCase {
  readonly direction: 'request';
  readonly body: unknown;
  /** Requests that ask the upstream for the same. */
  readonly twins?: readonly unknown[];
  /** Of the route, where they are not the usual ones. */
  readonly rules?: Partial<UpstreamRules>;
  readonly items?: readonly ConversationItem[];
  readonly chat?: Json;
  readonly notes?: readonly string[];
  readonly refusal?: Json;
}

/** Of the request whose answer is written. */
interface AnswerCase extends GoldenCase {
  readonly shows_thinking?: boolean;
  readonly max_tokens?: number;
  readonly stop?: readonly string[];
}

/** Chunks of an upstream, and the events that are sent; `keep-alive` = silence that asks for a sign of life. */
export interface StreamCase extends AnswerCase {
  readonly direction: 'stream';
  readonly chunks: readonly unknown[];
  /** A name and its data each. */
  readonly events: readonly (readonly [string, Json])[];
  /** What the events add up to; null = the stream ends with an error. */
  readonly message: Json | null;
}

/** A whole chat completion, and the whole message. */
export interface WholeCase extends AnswerCase {
  readonly direction: 'whole';
  readonly document: unknown;
  readonly message: Json;
}

export interface ErrorCase extends GoldenCase {
  readonly direction: 'error';
  readonly problem: DialectProblem;
  readonly status: number;
  readonly headers: Json;
  readonly body: Json;
}

export type MessagesCase = RequestCase | StreamCase | WholeCase | ErrorCase;

const requestId = 'req1';

export function readOf(body: unknown, rules: Partial<UpstreamRules> = {}) {
  try {
    const { conversation, notes } = messagesDialect.read(body);
    const { input, sampling, extraBody } = chatRequest(
      conversation,
      new ToolNames(conversation.tools),
      rules,
    );
    const { stream, stream_options, ...chat } = chatBody(
      {
        ...{ requestId, model: conversation.model, input, sampling, extraBody },
        ...{ isStreaming: conversation.isStreaming, wantsTokens: false },
      },
      input,
    );
    return { chat, stream, stream_options, notes, items: conversation.items, refusal: undefined };
  } catch (error) {
    if (!(error instanceof RequestProblem)) throw error;
    const { status, body: refusal } = messagesDialect.problem(error.problem, requestId);
    return { refusal: { status, ...refusal } };
  }
}

export function writerOf({ shows_thinking = true }: AnswerCase): AnswerWriter {
  const head = { requestId, model: 'mock-model', createdAt: new Date(0) };
  return messagesDialect.writer(head, { showsThinking: shows_thinking });
}

export function readerOf({ direction, stop = [] }: AnswerCase): ChatReader {
  const at = { url: 'http://engine', requestId: null, secrets: [] };
  return new ChatReader(
    {
      ...{ requestId, model: null, isStreaming: direction === 'stream', wantsTokens: false },
      ...{ input: { kind: 'messages', messages: [] }, sampling: { stop } },
    },
    at,
  );
}

export function itemsOf({ max_tokens }: AnswerCase): AnswerItems {
  return new AnswerItems(new ToolNames([]), { maxTokens: max_tokens ?? null });
}

/** `answer` is null where the stream breaks off. */
export function streamOf(given: StreamCase): {
  readonly sent: readonly SentEvent[];
  readonly answer: Answer | null;
  readonly writer: AnswerWriter;
} {
  const [reader, items, writer] = [readerOf(given), itemsOf(given), writerOf(given)];
  const sent = [...writer.start()];
  let answer: Answer | null = null;
  const take = (parts: readonly ModelPart[]): void => {
    for (const event of parts.flatMap((part) => items.push(part))) {
      if (event.type === 'end') answer = event.answer;
      sent.push(...writer.write(event));
    }
  };
  try {
    for (const chunk of given.chunks)
      if (chunk === 'keep-alive') sent.push(...writer.keepAlive());
      else take(reader.event(chunk));
    const last = reader.end();
    if (last === null)
      throw engineError('ENGINE_STREAM_BROKEN', 'the stream ended before the answer', {
        ...{ url: 'http://engine', requestId: null, secrets: [] },
      });
    take(last);
  } catch (error) {
    sent.push(...writer.fail(callProblem(error, [])));
  }
  return { sent, answer, writer };
}

export function wholeOf(given: WholeCase): Json {
  const [reader, items, writer] = [readerOf(given), itemsOf(given), writerOf(given)];
  for (const event of reader.whole(given.document).flatMap((part) => items.push(part)))
    if (event.type === 'end') return writer.whole(event.answer);
  throw new Error('the answer does not end');
}
