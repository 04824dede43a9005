/**
 * One call in a dialect that the upstream does not speak: the request is read whole and turned into messages, the answer is written as the upstream's comes,
 * no faster than the agent reads. A failure before the answer began is a status; afterwards it is the dialect's terminal event, of which there is exactly one.
 * Whichever of agent, upstream and abort ends first ends the others.
 */
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { isRolloutError } from '../core/errors.ts';
import { LinkedAbort } from '../core/linked-abort.ts';
import type { ModelCall, ModelPart } from '../engines/model-call.ts';
import type { CallParts } from './call-parts.ts';
import { CallProgress } from './call-progress.ts';
import type { CallEnd } from './capture/call-capture.ts';
import type { TranslatedCapture } from './capture/translated-capture.ts';
import type { CountedPrompt } from './count-tokens.ts';
import {
  RequestProblem,
  type AnswerWriter,
  type Dialect,
  type DialectProblem,
  type ProblemAnswer,
} from './dialects/dialect.ts';
import { EventStream } from './event-stream.ts';
import { bodyTooLarge, sendProblem, type GatewayError } from './gateway-error.ts';
import { AnswerItems } from './items/answer-items.ts';
import type { AnswerEvent } from './items/answer.ts';
import { chatRequest } from './items/chat-request.ts';
import { ToolNames } from './items/tool-names.ts';
import { maskedPart } from './masked-part.ts';
import { pinnedFields, pinnedRequest } from './pinned-request.ts';
import { callProblem, ownProblem } from './problems.ts';
import type { RunningCall } from './running-calls.ts';
import { BodyTooLarge, jsonBody } from './whole-body.ts';

type JsonObject = Readonly<Record<string, unknown>>;

interface Writing {
  readonly items: AnswerItems;
  readonly writer: AnswerWriter;
}

export interface TranslatedCallParts extends CallParts {
  readonly dialect: Dialect;
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  /** Answers with the number of tokens of the prompt, and calls no model; null = it calls the model. */
  readonly count: ((prompt: CountedPrompt, signal: AbortSignal) => Promise<number>) | null;
  /** null = nothing of it is kept. */
  readonly capture: TranslatedCapture | null;
  /** Silence towards the agent for this long brings a sign of life. */
  readonly keepAliveMs: number;
  /** A defect of the gateway. */
  readonly onDefect: (error: unknown) => void;
}

export class TranslatedCall implements RunningCall {
  /** Its bytes are characters of the answer: the upstream's bytes are not seen here. */
  readonly progress: CallProgress;
  readonly #parts: TranslatedCallParts;
  readonly #requestId = randomBytes(12).toString('hex');
  readonly #link = new LinkedAbort([]);
  /** As the upstream says; until then, and where it does not, one for each piece. */
  #sampledTokens = 0;
  #promptTokens = 0;
  /** For the capture: why it ended before the engine's end, with what the upstream said. */
  #early: { end: CallEnd; status: number | null; problem: string | null } | null = null;
  #status: number | null = null;
  #counted: number | null = null;

  constructor(parts: TranslatedCallParts) {
    this.#parts = parts;
    this.progress = new CallProgress(parts.clock);
    const { response } = parts;
    response.on('close', () => {
      if (response.writableFinished) return;
      this.#endsEarly('left');
      this.#link.abort(new Error('the agent left'));
    });
    response.on('error', (error) => this.#link.abort(error));
  }

  get gone(): Promise<void> {
    return this.progress.gone;
  }

  send(): void {
    this.#parts.route.begin(this.progress);
    void this.#run()
      .catch((error: unknown) => {
        this.#parts.onDefect(error);
        this.#parts.response.destroy();
      })
      .finally(() => this.#settle());
  }

  /** Ends it on both sides; the agent hears `answer` where it has heard nothing yet. */
  end(reason: Error, answer: GatewayError): void {
    if (this.#link.signal.aborted) return;
    const { response } = this.#parts;
    this.#endsEarly('aborted');
    if (response.headersSent) response.destroy();
    else this.#refuse(ownProblem(answer));
    this.#link.abort(reason);
  }

  async #run(): Promise<void> {
    const { route, response, bodyLimitBytes, onRefusal, onDefect } = this.#parts;
    const { signal } = this.#link;
    try {
      if (await this.#answer()) route.succeeded();
    } catch (error) {
      // Who ended the call has been told, or is gone.
      if (signal.aborted) return;
      const problem =
        error instanceof BodyTooLarge
          ? ownProblem(bodyTooLarge(bodyLimitBytes))
          : callProblem(error, route.hidden);
      this.#endsEarly(this.#status === null ? 'refused' : 'cut', problem);
      if (isDefect(error)) onDefect(error);
      else if (isRolloutError(error) && !isRolloutError(error, 'CONVERSATION_INVALID'))
        onRefusal(problem.status, problem.message);
      if (response.headersSent) response.destroy();
      else this.#refuse(problem);
    }
  }

  /** False = it failed after it had begun, and the client has been told. */
  async #answer(): Promise<boolean> {
    const { route, dialect, request, share, count, capture, bodyLimitBytes, onNotes } = this.#parts;
    const { signal } = this.#link;
    const { body: given, text } = await jsonBody(request, { limitBytes: bodyLimitBytes, signal });
    const isResponses = dialect.name === 'responses';
    const resolved = isResponses ? route.responses.resolved(given) : given;
    const { conversation, extra, notes, ...read } = dialect.read(this.#pinned(resolved), text);
    onNotes(notes);
    const tools = new ToolNames(conversation.tools);
    const asked = read.asked ?? chatRequest(conversation, tools);
    if (count !== null) {
      const { messages, tools: defined = [] } = asked.input;
      const prompt = { model: conversation.model, messages, tools: defined };
      capture?.counting(prompt);
      this.#counted = await count(prompt, signal);
      this.#send({ status: 200, headers: {}, body: { input_tokens: this.#counted } });
      return true;
    }
    const head = {
      requestId: this.#requestId,
      model: conversation.model ?? 'default',
      createdAt: this.progress.startedAt,
    };
    const writer = dialect.writer(head, extra);
    const engine = await route.engine();
    const generation = {
      requestId: this.#requestId,
      model: conversation.model,
      isStreaming: conversation.isStreaming,
      wantsTokens: false,
      ...asked,
      extraBody: { ...asked.extraBody, ...pinnedFields(route.pins ?? {}) },
    };
    await capture?.room(signal);
    const opening = engine.generate(capture?.asking(generation) ?? generation, signal);
    opening.then(
      () => {
        this.#status = 200;
        share.answered();
      },
      () => undefined,
    );
    const { maxTokens = null } = conversation.sampling;
    const items = new AnswerItems(tools, { maxTokens });
    const whole = conversation.isStreaming
      ? await this.#stream(opening, { items, writer })
      : await this.#whole(await opening, { items, writer });
    onNotes(items.notes);
    if (whole === null) return false;
    if (isResponses) route.responses.keep(whole, { given, resolved });
    if (!conversation.isStreaming) this.#send({ status: 200, body: whole, headers: {} });
    return true;
  }

  #pinned(body: JsonObject): JsonObject {
    const { route, dialect, onNotes } = this.#parts;
    if (route.pins === null) return body;
    const pinned = pinnedRequest(body, route.pins, dialect.pinFields);
    onNotes(pinned.replaced.map((field) => `${field} is pinned for this rollout`));
    return pinned.body;
  }

  async #whole(call: ModelCall, { items, writer }: Writing): Promise<JsonObject> {
    for await (const part of call)
      for (const event of this.#seen(part, items))
        if (event.type === 'end') return writer.whole(event.answer);
    throw new Error('a model call ended without its result');
  }

  /** null = it failed after it had begun, and the client has been told. */
  async #stream(
    opening: Promise<ModelCall>,
    { items, writer }: Writing,
  ): Promise<JsonObject | null> {
    const { response, clock, keepAliveMs, route, onRefusal } = this.#parts;
    const { signal } = this.#link;
    // Up to the first sign of life that is due, a failure is still a status of its own.
    await this.#openedOrLate(opening);
    using stream = new EventStream(response, {
      ...{ clock, keepAliveMs, signal, headers: this.#headers },
      keepAlive: () => writer.keepAlive(),
    });
    try {
      await stream.send(writer.start());
      for await (const part of await opening) {
        const events = this.#seen(part, items);
        const last = events.at(-1);
        const sent = events.flatMap((event) => writer.write(event));
        if (last?.type !== 'end') await stream.send(sent);
        else {
          stream.end(sent, writer.closing);
          return writer.whole(last.answer);
        }
      }
      throw new Error('a model call ended without its result');
    } catch (error) {
      opening.catch(() => undefined);
      signal.throwIfAborted();
      if (isDefect(error)) throw error;
      const problem = callProblem(error, route.hidden);
      this.#endsEarly(this.#status === null ? 'refused' : 'cut', problem);
      onRefusal(problem.status, problem.message);
      stream.end(writer.fail(problem));
      return null;
    }
  }

  /** Rejects when the call fails before the first sign of life is due. */
  async #openedOrLate(opening: Promise<ModelCall>): Promise<void> {
    const { clock, keepAliveMs } = this.#parts;
    using wait = new LinkedAbort([this.#link.signal]);
    const late = clock.sleep(keepAliveMs, wait.signal).catch(() => undefined);
    try {
      await Promise.race([opening, late]);
    } finally {
      wait.abort(new Error('it has begun, or is late'));
    }
    this.#link.signal.throwIfAborted();
  }

  /** What the part brings; the capture has it before it is made into anything. */
  #seen(part: ModelPart, items: AnswerItems): readonly AnswerEvent[] {
    this.#parts.capture?.part(part);
    const { route } = this.#parts;
    const events = items.push(maskedPart(part, route.unlikelySecrets));
    let characters = 0;
    for (const event of events)
      if (event.type === 'item-delta') {
        characters += event.delta.length;
        this.#sampledTokens += 1;
      } else if (event.type === 'end' && event.answer.usage !== null) {
        this.#sampledTokens = event.answer.usage.outputTokens;
        this.#promptTokens = event.answer.usage.inputTokens;
      }
    this.progress.came(characters);
    return events;
  }

  /** The first reason holds. */
  #endsEarly(end: CallEnd, problem: DialectProblem | null = null): void {
    this.#early ??= { end, status: problem?.status ?? null, problem: problem?.message ?? null };
  }

  #refuse(problem: DialectProblem): void {
    this.#send(this.#parts.dialect.problem(problem, this.#requestId));
  }

  #send(answer: ProblemAnswer): void {
    sendProblem(this.#parts.response, {
      ...answer,
      headers: { ...this.#headers, ...answer.headers },
    });
  }

  get #headers(): Readonly<Record<string, string>> {
    return { 'request-id': this.#requestId, 'x-request-id': this.#requestId };
  }

  #capture(): void {
    const { capture, response } = this.#parts;
    const early = this.#early;
    const isCounted = this.#counted !== null;
    capture?.ended({
      end: isCounted ? 'complete' : (early?.end ?? 'cut'),
      status: early?.status ?? (isCounted ? 200 : this.#status),
      problem: early?.problem ?? null,
      isDelivered: response.writableFinished,
      ...{ firstByteMs: this.progress.firstByteMs, durationMs: this.progress.durationMs },
      ...(this.#counted !== null && { tokens: this.#counted }),
    });
  }

  async #settle(): Promise<void> {
    const { route, response, share, onEnd } = this.#parts;
    if (!response.closed) await once(response, 'close').catch(() => undefined);
    this.#link[Symbol.dispose]();
    share.ended(this.#sampledTokens, this.#promptTokens);
    this.#capture();
    route.end(this.progress);
    this.progress.over();
    const status = response.writableFinished ? response.statusCode : null;
    onEnd(this.progress.ended(route.rolloutId, status));
  }
}

/** Neither the client's request nor the upstream: the gateway itself. */
function isDefect(error: unknown): boolean {
  return (
    !isRolloutError(error) && !(error instanceof RequestProblem || error instanceof BodyTooLarge)
  );
}
