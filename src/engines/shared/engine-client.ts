/**
 * What the clients of all dialects share: sending a generation, the table of running calls, fields that an endpoint refuses, and the end of the
 * client. `close` waits for running calls; `destroy` fails them.
 */
import type { Dispatcher } from 'undici';
import { RolloutError, type ErrorCode } from '../../core/errors.ts';
import type { EngineCapabilities, EngineOptions, GenerateRequest } from '../engine.ts';
import type { ModelCall } from '../model-call.ts';
import { engineError } from './answer-error.ts';
import { EngineHttp, isSuccess, type HttpRequest } from './engine-http.ts';
import { isRefusedInStreams, refusedFields } from './refused-fields.ts';
import { RunningCall, type AnswerReader } from './running-call.ts';

/** How long the engine has to take note of an abort that nobody waits for. */
const noticeMs = 1_000;

export interface Generation {
  readonly path: string;
  /** Complete, but for fields that the endpoint refused before. */
  readonly body: Readonly<Record<string, unknown>>;
  /** Joins the body when the endpoint refuses a field because of streaming. */
  readonly insteadInStreams?: Readonly<Record<string, unknown>>;
  readonly reader: AnswerReader;
}

export class EngineClient {
  readonly http: EngineHttp;
  readonly #abortNotice: ((requestId: string) => HttpRequest) | null;
  readonly #running = new Set<RunningCall>();
  readonly #notices = new Set<Promise<void>>();
  /** Of streamed requests and of others. */
  readonly #refused = { streamed: new Set<string>(), whole: new Set<string>() };
  #needsInstead = false;
  #whenIdle: (() => void)[] = [];
  #closing: Promise<void> | null = null;
  #destroying: Promise<void> | null = null;

  constructor(
    options: EngineOptions,
    dialect: {
      /** What tells the engine to end a request whose connection is gone; null = closing the connection is all there is. */
      readonly abortNotice: ((requestId: string) => HttpRequest) | null;
    },
  ) {
    this.http = new EngineHttp(options);
    this.#abortNotice = dialect.abortNotice;
  }

  unsupported(capability: keyof EngineCapabilities): RolloutError {
    return this.error('ENGINE_UNSUPPORTED', `this kind of engine does not offer ${capability}`);
  }

  /** The whole of a method that the dialect does not have. */
  refuse(capability: keyof EngineCapabilities): Promise<never> {
    return Promise.reject(this.unsupported(capability));
  }

  async generate(
    request: GenerateRequest,
    generation: Generation,
    signal: AbortSignal,
  ): Promise<ModelCall> {
    signal.throwIfAborted();
    this.refuseWhenOver();
    const { requestId, isStreaming } = request;
    const call: RunningCall = new RunningCall(
      {
        requestId,
        isStreaming,
        at: this.http.origin(requestId),
        stallMs: this.http.stallMs,
        reader: generation.reader,
        onOver: (isComplete) => this.#over(call, isComplete),
      },
      [signal, this.http.destroyed],
    );
    this.#running.add(call);
    try {
      call.begin(await this.#answer(request, generation, call));
      return call;
    } catch (error) {
      call.fail();
      throw error;
    }
  }

  /** Ends running calls of this client; their readers get CANCELLED. */
  abortOwn(requestId: string): void {
    for (const call of [...this.#running])
      if (call.requestId === requestId)
        call.abort(this.error('CANCELLED', 'the request was aborted', requestId));
  }

  error(code: ErrorCode, what: string, requestId: string | null = null): RolloutError {
    return engineError(code, what, this.http.origin(requestId));
  }

  refuseWhenOver(): void {
    this.http.destroyed.throwIfAborted();
    if (this.#closing !== null)
      throw this.error('ENGINE_UNAVAILABLE', 'the client of the engine is closed');
  }

  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  destroy(reason: Error): Promise<void> {
    this.#destroying ??= this.http.destroy(reason, () => Promise.all(this.#notices));
    return this.#destroying;
  }

  async #close(): Promise<void> {
    if (this.#running.size > 0)
      await new Promise<void>((resolve) => {
        this.#whenIdle.push(resolve);
      });
    await Promise.all(this.#notices);
    if (this.#destroying === null) await this.http.close();
    else await this.#destroying;
  }

  async #answer(
    request: GenerateRequest,
    generation: Generation,
    call: RunningCall,
  ): Promise<Dispatcher.ResponseData> {
    const known = request.isStreaming ? this.#refused.streamed : this.#refused.whole;
    for (;;) {
      const isInstead = request.isStreaming && this.#needsInstead;
      const wanted = { ...(isInstead && generation.insteadInStreams), ...generation.body };
      const body = Object.fromEntries(Object.entries(wanted).filter(([name]) => !known.has(name)));
      const { path } = generation;
      const { requestId, headers } = request;
      // An answer that is not streamed begins when sampling has ended: silence before it is no stall.
      if (request.isStreaming) call.watchSilence();
      request.onSend?.(body);
      const answer = await this.http.open(
        { method: 'POST', path, body, requestId, ...(headers !== undefined && { headers }) },
        call.signal,
      );
      if (isSuccess(answer.statusCode)) return answer;
      call.watchSilence();
      const failure = await this.http.failure(answer, requestId);
      call.signal.throwIfAborted();
      const refused = refusedFields(answer.statusCode, failure.body, body);
      if (refused.length === 0) throw failure.error;
      for (const name of refused) known.add(name);
      this.#needsInstead ||= isRefusedInStreams(failure.body);
    }
  }

  #over(call: RunningCall, isComplete: boolean): void {
    this.#running.delete(call);
    if (!isComplete && this.#abortNotice !== null) {
      const notice = this.http
        .notify(this.#abortNotice(call.requestId), noticeMs)
        .finally(() => this.#notices.delete(notice));
      this.#notices.add(notice);
    }
    if (this.#running.size === 0) for (const resolve of this.#whenIdle.splice(0)) resolve();
  }
}
