/**
 * One call on its way: the request goes up and the answer comes down as bytes, each side no faster than the other takes them. It ends once, when
 * upstream is done with it and the agent has its answer or is gone; whichever of agent, upstream and abort ends first ends the others.
 */
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Dispatcher } from 'undici';
import type { Clock } from '../core/clock.ts';
import { messageOf } from '../core/errors.ts';
import { LinkedAbort } from '../core/linked-abort.ts';
import type { SamplingPins } from '../wire/rollout/route-rules.ts';
import type { CallShare } from './call-budget.ts';
import type { CallEnd } from './capture/call-capture.ts';
import type { RelayCapture } from './capture/relay-capture.ts';
import { RequestProblem } from './dialects/dialect.ts';
import {
  bodyTooLarge,
  codeOf,
  noAnswer,
  sendError,
  upstreamRefusal,
  type GatewayError,
} from './gateway-error.ts';
import type { CallState, LiveRoute } from './live-route.ts';
import { pinnedBody } from './pinned-body.ts';
import { answerHeaders, upstreamHeaders } from './relay-headers.ts';
import { RequestBody } from './request-body.ts';
import { SampledTokens } from './sampled-tokens.ts';
import { SecretFilter } from './secret-filter.ts';
import { BodyTooLarge, wholeBody } from './whole-body.ts';

/** A refusal is read no further than this. */
const refusalBytes = 64 * 1024;

/** One call that has ended, for observers. */
export interface RelayedCall {
  readonly rolloutId: string;
  /** Of the answer that the agent got; null = none: the agent or an abort ended the call first. */
  readonly status: number | null;
  readonly firstByteMs: number | null;
  readonly durationMs: number;
  readonly answerBytes: number;
}

export interface RelayCallParts {
  readonly route: LiveRoute;
  /** `/chat/completions`, `/models`. */
  readonly suffix: string;
  readonly ownKey: string;
  /** Sampling parameters that take the place of the client's; null = its body is not looked at. */
  readonly pins: SamplingPins | null;
  /** null = nothing of it is kept. */
  readonly capture: RelayCapture | null;
  readonly share: CallShare;
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  readonly clock: Clock;
  readonly bodyLimitBytes: number;
  readonly onRefusal: (status: number | null, message: string) => void;
  /** What was changed of the request; for the log. */
  readonly onNotes: (notes: readonly string[]) => void;
  readonly onEnd: (call: RelayedCall) => void;
}

/** A status that is no success, while its body comes. */
interface Refusal {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | string[]>>;
  readonly pieces: Buffer[];
}

export class RelayCall implements Dispatcher.DispatchHandler, CallState {
  readonly startedAt: Date;
  /** Resolves when the call has ended on both sides. */
  readonly gone: Promise<void>;
  readonly #parts: RelayCallParts;
  readonly #startedMs: number;
  readonly #isGone: () => void;
  readonly #body: RequestBody | null;
  readonly #filter: SecretFilter;
  /** Ends what comes before the sending. */
  readonly #life = new LinkedAbort([]);
  /** null = the body cannot be sent once more. */
  #sendAgain: ((body: Buffer) => void) | null = null;
  /** For the capture: why it ended before the engine's end. */
  #early: CallEnd | null = null;
  #status: number | null = null;
  #problem: string | null = null;
  #controller: Dispatcher.DispatchController | null = null;
  #bytes = 0;
  #firstByteMs: number | null = null;
  #lastByteMs: number | null = null;
  /** null = the answer is passed through. */
  #refusal: Refusal | null = null;
  /** null = nobody counts them. */
  #sampled: SampledTokens | null = null;
  #endReason: Error | null = null;
  #isUpstreamDone = false;
  #isAgentDone = false;
  #isOver = false;

  constructor(parts: RelayCallParts) {
    this.#parts = parts;
    this.#filter = new SecretFilter(parts.route.unlikelySecrets);
    this.startedAt = parts.clock.now();
    this.#startedMs = parts.clock.monotonicMs();
    const { promise, resolve } = Promise.withResolvers<undefined>();
    this.gone = promise;
    this.#isGone = () => resolve(undefined);
    this.#body =
      parts.request.method === 'POST' && parts.pins === null && parts.capture === null
        ? new RequestBody(parts.request, {
            limitBytes: parts.bodyLimitBytes,
            onTooLarge: () => this.#refuse(bodyTooLarge(parts.bodyLimitBytes)),
          })
        : null;
    // An error of it is the end of this call, which knows already.
    this.#body?.on('error', () => undefined);
    parts.response.on('drain', () => this.#controller?.resume());
    parts.response.on('finish', () => this.#agentDone());
    parts.response.on('close', () => this.#agentDone());
    parts.response.on('error', () => this.#agentDone());
  }

  get bytes(): number {
    return this.#bytes;
  }

  get lastByteAt(): Date | null {
    if (this.#lastByteMs === null) return null;
    return new Date(this.startedAt.getTime() + (this.#lastByteMs - this.#startedMs));
  }

  send(dispatcher: Dispatcher): void {
    const { route, pins, capture } = this.#parts;
    route.begin(this);
    if (pins === null && capture === null) this.#dispatch(dispatcher, this.#body);
    else void this.#sendWhole(dispatcher);
  }

  async #sendWhole(dispatcher: Dispatcher): Promise<void> {
    const { request, capture, bodyLimitBytes: limitBytes } = this.#parts;
    const { signal } = this.#life;
    try {
      const given = this.#pinned(await wholeBody(request, { limitBytes, signal }));
      await capture?.room(signal);
      if (this.#endReason !== null || this.#isOver) return;
      this.#sendAgain = (body) => this.#dispatch(dispatcher, body);
      this.#dispatch(dispatcher, capture?.sent(given) ?? given);
    } catch (error) {
      if (error instanceof BodyTooLarge) this.#refuse(bodyTooLarge(limitBytes));
      else if (error instanceof RequestProblem) this.#refuse(invalidRequest(error.message));
      else if (this.#endReason === null) this.#agentDone();
    }
  }

  #pinned(given: Buffer): Buffer {
    const { pins, onNotes } = this.#parts;
    if (pins === null) return given;
    const { bytes, replaced } = pinnedBody(given, pins);
    onNotes(replaced.map((field) => `${field} is pinned for this rollout`));
    return bytes;
  }

  #dispatch(dispatcher: Dispatcher, body: RequestBody | Buffer | null): void {
    const { route, request, suffix, ownKey } = this.#parts;
    dispatcher.dispatch(
      {
        origin: route.endpoint.origin,
        path: route.endpoint.pathTo(suffix),
        method: request.method ?? 'GET',
        headers: upstreamHeaders(request.rawHeaders, {
          ownKey,
          authorization: route.authorization,
          isRewritten: Buffer.isBuffer(body),
        }),
        body,
      },
      this,
    );
  }

  /** Ends it on both sides; the agent hears `answer` where it has heard nothing yet. */
  end(reason: Error, answer: GatewayError): void {
    if (this.#endReason !== null || this.#isOver) return;
    this.#early ??= 'aborted';
    if (this.#parts.response.headersSent) {
      this.#endUpstream(reason);
      this.#parts.response.destroy();
    } else this.#refuse(answer, reason);
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.#controller = controller;
    if (this.#endReason !== null) controller.abort(this.#endReason);
  }

  onResponseStart(
    _controller: Dispatcher.DispatchController,
    status: number,
    headers: Readonly<Record<string, string | string[] | undefined>>,
  ): void {
    // An interim answer; the final one follows.
    if (status < 200 || this.#endReason !== null) return;
    const { route, response, capture } = this.#parts;
    const kept = answerHeaders(headers, route.secrets);
    this.#status = status;
    if (status >= 300) {
      this.#refusal = { status, headers: kept, pieces: [] };
      return;
    }
    this.#parts.share.answered();
    if (capture?.begins(String(headers['content-type'])) === true) {
      // What is taken out of it could not be taken out of a compressed answer, which nobody asked for.
      if ((headers['content-encoding'] ?? 'identity') !== 'identity') {
        this.#early ??= 'refused';
        this.#problem = compressed.message;
        this.#refuse(compressed);
        return;
      }
      delete kept['content-length'];
    }
    if (route.budget.countsTokens)
      this.#sampled = new SampledTokens({
        isStream: String(headers['content-type']).includes('event-stream'),
      });
    response.writeHead(status, kept);
    // Bytes that came with the headers go out with them; where there are none the agent hears of the status now.
    process.nextTick(() => {
      if (this.#bytes === 0 && !response.writableEnded) response.flushHeaders();
    });
  }

  onResponseData(controller: Dispatcher.DispatchController, chunk: Buffer): void {
    const nowMs = this.#parts.clock.monotonicMs();
    this.#firstByteMs ??= nowMs - this.#startedMs;
    this.#lastByteMs = nowMs;
    this.#bytes += chunk.length;
    this.#sampled?.push(chunk);
    if (this.#endReason !== null) return;
    if (this.#refusal === null) {
      this.#pass(chunk, controller);
      return;
    }
    this.#refusal.pieces.push(chunk);
    if (this.#bytes < refusalBytes) return;
    this.#answerRefusal(this.#refusal);
    this.#endUpstream(new Error('the refusal is long enough'));
  }

  onResponseEnd(): void {
    this.#isUpstreamDone = true;
    if (this.#endReason === null) {
      if (this.#refusal !== null) {
        if (this.#isSentAgain(this.#refusal)) return;
        this.#answerRefusal(this.#refusal);
      } else {
        const { route, response, capture } = this.#parts;
        route.succeeded();
        const last = this.#filter.push(capture?.end() ?? Buffer.alloc(0));
        response.end(Buffer.concat([last, this.#filter.end()]));
      }
    }
    this.#settle();
  }

  /** What the agent may see of a piece goes on; a pause that it brings ends with `drain`. */
  #pass(chunk: Buffer, controller: Dispatcher.DispatchController): void {
    const { capture, response } = this.#parts;
    let shown: Buffer;
    try {
      shown = this.#filter.push(capture?.push(chunk) ?? chunk);
    } catch (error) {
      this.#early ??= 'cut';
      this.#problem = messageOf(error);
      this.#endUpstream(new Error(this.#problem));
      response.destroy();
      return;
    }
    if (shown.length > 0 && !response.write(shown)) controller.pause();
  }

  /** The upstream does not know a field that the agent did not send: it is asked without it. */
  #isSentAgain({ status, pieces }: Refusal): boolean {
    const { capture } = this.#parts;
    const send = this.#sendAgain;
    if (capture === null || send === null) return false;
    const body = capture.sentAgain(status, Buffer.concat(pieces).toString('utf8'));
    if (body === null) return false;
    this.#refusal = null;
    this.#isUpstreamDone = false;
    this.#bytes = 0;
    send(body);
    return true;
  }

  onResponseError(_controller: Dispatcher.DispatchController | null, error: Error): void {
    this.#isUpstreamDone = true;
    if (this.#endReason === null) {
      this.#endReason = error;
      const { response, onRefusal } = this.#parts;
      const code = codeOf(error);
      this.#early ??= response.headersSent ? 'cut' : 'refused';
      this.#problem = `${response.headersSent ? 'the answer broke off' : 'no answer'} (${code})`;
      onRefusal(null, this.#problem);
      // An answer that breaks off must not look like one that ended.
      if (response.headersSent) response.destroy();
      else sendError(response, unreachable(code));
      this.#body?.destroy();
    }
    this.#settle();
  }

  /** A status that is no success: its body is small, and may name a key. */
  #answerRefusal({ status, headers, pieces }: Refusal): void {
    const { route, response, onRefusal } = this.#parts;
    const { 'content-encoding': encoding, ...plain } = headers;
    // Nobody asked for a compressed answer: what it says is lost, its status is not.
    const whole =
      encoding === undefined ? route.withoutSecrets(Buffer.concat(pieces).toString('utf8')) : '';
    // Where it was cut, half a key may be its end.
    const told = this.#filter.push(Buffer.from(whole));
    const rest = this.#bytes < refusalBytes ? this.#filter.end() : Buffer.alloc(0);
    const text = Buffer.concat([told, rest]).toString('utf8');
    this.#early ??= 'refused';
    if (status < 400) {
      const message = `the model's address answers with the redirection ${status}`;
      this.#problem = message;
      onRefusal(status, message);
      sendError(response, { status: 502, code: 'upstream_refused', message });
      return;
    }
    const { message, body } = upstreamRefusal(status, text);
    this.#problem = message;
    onRefusal(status, message);
    const bytes = Buffer.from(body ?? text);
    response.writeHead(status, {
      ...plain,
      ...(body !== null && { 'content-type': 'application/json' }),
      'content-length': bytes.length,
    });
    response.end(bytes);
  }

  #refuse(answer: GatewayError, reason: Error = new Error(answer.message)): void {
    if (this.#endReason !== null || this.#parts.response.headersSent) return;
    sendError(this.#parts.response, answer);
    this.#endUpstream(reason);
  }

  #agentDone(): void {
    if (this.#isAgentDone) return;
    this.#isAgentDone = true;
    if (!this.#isUpstreamDone) {
      this.#early ??= 'left';
      this.#endUpstream(new Error('the agent left'));
    }
    this.#settle();
  }

  #endUpstream(reason: Error): void {
    if (this.#endReason === null && !this.#isUpstreamDone) {
      this.#endReason = reason;
      // Before the request is on the wire there is nothing to end: it will be refused when it gets there.
      if (this.#controller === null) this.#isUpstreamDone = true;
      else this.#controller.abort(reason);
    }
    this.#body?.destroy();
    this.#life.abort(reason);
    this.#settle();
  }

  #settle(): void {
    if (this.#isOver || !this.#isUpstreamDone || !this.#isAgentDone) return;
    this.#isOver = true;
    const { route, response, share, capture, clock, onEnd } = this.#parts;
    this.#life[Symbol.dispose]();
    share.ended(this.#sampled?.count ?? 0);
    capture?.ended({
      ...{ end: this.#early ?? 'cut', status: this.#status, problem: this.#problem },
      isDelivered: response.writableFinished,
      firstByteMs: this.#firstByteMs,
      durationMs: clock.monotonicMs() - this.#startedMs,
    });
    route.end(this);
    this.#isGone();
    onEnd({
      rolloutId: route.rolloutId,
      status: response.headersSent && response.writableFinished ? response.statusCode : null,
      firstByteMs: this.#firstByteMs,
      durationMs: clock.monotonicMs() - this.#startedMs,
      answerBytes: this.#bytes,
    });
  }
}

const compressed: GatewayError = {
  ...{ status: 502, code: 'upstream_refused' },
  message: "the model's address compresses its answer, although nobody allowed it to",
};

function invalidRequest(message: string): GatewayError {
  return { status: 400, code: 'invalid_request', message };
}

function unreachable(code: string): GatewayError {
  return {
    status: 502,
    code: 'upstream_unreachable',
    message: noAnswer(code),
  };
}
