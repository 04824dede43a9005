/** Port: a wire dialect at the gateway's edge. It knows neither HTTP nor the upstream: requests are read into a conversation, answers are written from items. */
import type { SamplingPins } from '../../wire/rollout/route-rules.ts';
import type { Conversation } from '../items/conversation.ts';
import type { Answer, AnswerEvent } from '../items/answer.ts';
import type { ChatRequest } from '../items/chat-request.ts';

/** One server-sent event. `event` is written as a line of its own where the dialect has such names. */
export interface SentEvent {
  readonly event: string | null;
  readonly data: Readonly<Record<string, unknown>>;
}

/** Known before the first token. */
export interface AnswerHead {
  /** Unique: what ids of the answer are made of. */
  readonly requestId: string;
  /** As the client named it. */
  readonly model: string;
  readonly createdAt: Date;
}

/** Writes one answer, streamed or whole. */
export interface AnswerWriter {
  /** What goes out before the upstream has said anything. */
  start(): readonly SentEvent[];
  /** For each event of the answer in order; the last one yields the terminal event of the dialect. */
  write(event: AnswerEvent): readonly SentEvent[];
  /** Something that clients count as a sign of life, between two events; none is legal before `start`. */
  keepAlive(): readonly SentEvent[];
  /** The answer broke off after it had begun: what is open is closed as the dialect asks, then its terminal failure. Nothing follows. */
  fail(problem: DialectProblem): readonly SentEvent[];
  /** The final object; it may be asked for after the streamed form too, and equals what that adds up to. */
  whole(answer: Answer): Readonly<Record<string, unknown>>;
  /** What stands behind the terminal event of an answer that did not fail, as it goes out; absent = nothing. */
  readonly closing?: string;
}

/** What went wrong, before it has the shape of a dialect. */
export interface DialectProblem {
  readonly kind:
    | 'invalid' // the request cannot be understood or honoured
    | 'too-large'
    | 'unauthorized' // no key, two keys, an unknown or dead one
    | 'not-found'
    | 'method'
    | 'context-overflow'
    | 'overloaded' // worth another try after `retryAfter`
    | 'limit' // a budget of the rollout is used up: not worth another try
    | 'upstream'; // the engine failed or cannot be reached
  /** The upstream's status where it has one. */
  readonly status: number | null;
  readonly message: string;
  /** The field of the request; null = none. */
  readonly field: string | null;
  /** Header of the answer, as it came. */
  readonly retryAfter: string | null;
  /** Of a context overflow, where they are known. */
  readonly tokens: { readonly asked: number; readonly limit: number } | null;
}

export interface ProblemAnswer {
  readonly status: number;
  readonly body: Readonly<Record<string, unknown>>;
  readonly headers: Readonly<Record<string, string>>;
}

/** A request as read: `Extra` is what the writer needs to know of it. */
export interface ReadRequest<Extra> {
  readonly conversation: Conversation;
  /** The upstream's request, where the dialect is the upstream's own: nothing is made of the conversation's items then. */
  readonly asked?: ChatRequest;
  readonly extra: Extra;
  /** What was left out because no upstream knows it, a line each, for the log. */
  readonly notes: readonly string[];
}

/** Where the dialect has what a rollout may pin; what it has no field for is pinned in the chat request alone. */
export type PinFields = {
  readonly [Pin in keyof SamplingPins]?: {
    readonly path: readonly string[];
    /** One text is a list of one. */
    readonly isList?: boolean;
  };
};

export interface Dialect<Extra = unknown> {
  readonly name: 'chat' | 'responses' | 'messages';
  readonly pinFields: PinFields;
  /** Throws `RequestProblem` for what cannot be understood, and for fields that would change the meaning and cannot be honoured: by name. `text`: the body as the client spelled it. */
  read(body: unknown, text?: string): ReadRequest<Extra>;
  writer(head: AnswerHead, extra: Extra): AnswerWriter;
  /** The whole answer to a request that failed before its answer began, with the status that makes its clients stop or try again as they should. */
  problem(problem: DialectProblem, requestId: string): ProblemAnswer;
}

/** The request itself is at fault. */
export class RequestProblem extends Error {
  override readonly name = 'RequestProblem';
  readonly problem: DialectProblem;

  constructor(
    message: string,
    {
      kind = 'invalid',
      field = null,
    }: { readonly kind?: DialectProblem['kind']; readonly field?: string | null } = {},
  ) {
    super(message);
    this.problem = { kind, status: null, message, field, retryAfter: null, tokens: null };
  }
}
