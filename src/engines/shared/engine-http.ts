/**
 * HTTP to one engine: a pool for data and one for control, so that a control call never waits for a connection that a generation holds.
 * Neither pool has a limit of connections or a time limit of its own (a call of an hour is legal); every limit is the caller's signal, the
 * stall limit or the deadline of a control call. HTTP/2 is off: one connection's stream limit would be a hidden limit of concurrency.
 */
import { Pool, type Dispatcher } from 'undici';
import { RolloutError } from '../../core/errors.ts';
import { LinkedAbort } from '../../core/linked-abort.ts';
import type { EngineOptions } from '../engine.ts';
import {
  brokenError,
  engineError,
  statusError,
  transportError,
  type AnswerOrigin,
} from './answer-error.ts';
import { parseEndpoint, type Endpoint } from './endpoint.ts';
import { parseJson, wholeText } from './event-stream.ts';

const poolOptions = {
  connections: null,
  pipelining: 1,
  headersTimeout: 0,
  bodyTimeout: 0,
  allowH2: false,
  // Below the five seconds after which uvicorn closes idle connections: a longer one loses requests to that race.
  keepAliveTimeout: 4_000,
  // Also where the engine would keep them for longer: after a burst of aborts a thousand would lie idle.
  keepAliveMaxTimeout: 4_000,
  connect: { timeout: 10_000, keepAlive: true, keepAliveInitialDelay: 30_000 },
} satisfies Pool.Options;
const controlDeadlineMs = 10_000;
/** An error page is not read further than this. */
const errorBodyBytes = 64 * 1024;

export interface HttpRequest {
  readonly method: 'GET' | 'POST';
  /** What comes behind the base address. */
  readonly path: string;
  readonly body?: unknown;
  readonly headers?: Readonly<Record<string, string>>;
  readonly requestId?: string;
}

export interface ProbeAnswer {
  readonly status: number;
  readonly text: string;
  readonly retryAfter: string | null;
}

export class EngineHttp {
  readonly endpoint: Endpoint;
  readonly stallMs: number | null;
  readonly #data: Pool;
  readonly #control: Pool;
  readonly #authorization: string | null;
  readonly #destroyed = new AbortController();

  constructor(options: EngineOptions) {
    this.endpoint = parseEndpoint(options.baseUrl, options.apiKey);
    this.stallMs = options.stallMs ?? null;
    this.#authorization =
      options.apiKey === null ? this.endpoint.authorization : `Bearer ${options.apiKey}`;
    const { lookup } = options;
    const connect = { ...poolOptions.connect, ...(lookup !== undefined && { lookup }) };
    this.#data = new Pool(this.endpoint.origin, { ...poolOptions, connect });
    this.#control = new Pool(this.endpoint.origin, { ...poolOptions, connect });
  }

  /** Fires with the reason of `destroy`. */
  get destroyed(): AbortSignal {
    return this.#destroyed.signal;
  }

  origin(requestId: string | null): AnswerOrigin {
    return { url: this.endpoint.url, requestId, secrets: this.endpoint.secrets };
  }

  /** Opens a data call: resolves with its headers, whatever the status. */
  async open(request: HttpRequest, signal: AbortSignal): Promise<Dispatcher.ResponseData> {
    return await this.#send(this.#data, request, signal);
  }

  /** A control call, read whole; a status other than 2xx rejects. Its deadline is its own. */
  async control(request: HttpRequest, signal: AbortSignal): Promise<string> {
    const answer = await this.probe(request, signal);
    if (isSuccess(answer.status)) return answer.text;
    throw this.#refusal(answer);
  }

  /** The document of an answer to `probe`; a status other than 2xx throws. */
  accepted(answer: ProbeAnswer): unknown {
    if (isSuccess(answer.status)) return parseJson(answer.text, this.origin(null));
    throw this.#refusal(answer);
  }

  async controlJson(request: HttpRequest, signal: AbortSignal): Promise<unknown> {
    return parseJson(await this.control(request, signal), this.origin(null));
  }

  /** Like `control`, but a status is an answer. */
  async probe(request: HttpRequest, signal: AbortSignal): Promise<ProbeAnswer> {
    const at = this.origin(request.requestId ?? null);
    using link = new LinkedAbort([signal, this.destroyed], {
      ms: controlDeadlineMs,
      reason: () =>
        engineError('ENGINE_STALLED', `no answer to ${request.path} in time`, { ...at }),
    });
    try {
      const answer = await this.#send(this.#control, request, link.signal);
      return {
        status: answer.statusCode,
        text: await wholeText(answer.body as AsyncIterable<Uint8Array>, at),
        retryAfter: retryAfterOf(answer),
      };
    } catch (error) {
      link.signal.throwIfAborted();
      throw brokenError(error, at);
    }
  }

  /** The failure that an answer of a wrong status stands for; reads its body within bounds. */
  async failure(
    answer: Dispatcher.ResponseData,
    requestId: string | null,
  ): Promise<{ readonly error: RolloutError; readonly body: string }> {
    const body = await limitedText(answer);
    const status = answer.statusCode;
    const retryAfter = retryAfterOf(answer);
    return { error: statusError({ status, body, retryAfter }, this.origin(requestId)), body };
  }

  /** The caller has seen to it that no data call runs. */
  async close(): Promise<void> {
    await Promise.all([this.#data.close(), this.#control.close()]);
  }

  /** Fires `destroyed`; `last` is what still needs the control pool. */
  async destroy(reason: Error, last: () => Promise<unknown>): Promise<void> {
    this.#destroyed.abort(reason);
    await this.#data.destroy(reason);
    await last();
    await this.#control.destroy(reason);
  }

  /** A notice to the engine that outlives the call it is about: one attempt, bounded, its failure is nobody's. */
  async notify(request: HttpRequest, deadlineMs: number): Promise<void> {
    using link = new LinkedAbort([], {
      ms: deadlineMs,
      reason: () => new Error('notice too late'),
    });
    try {
      const answer = await this.#send(this.#control, request, link.signal);
      await answer.body.dump({ limit: errorBodyBytes, signal: link.signal });
    } catch {
      // The connection of the call is closed already, which most engines take for an abort.
    }
  }

  #refusal({ status, text, retryAfter }: ProbeAnswer): RolloutError {
    return statusError({ status, body: text, retryAfter }, this.origin(null));
  }

  async #send(
    pool: Pool,
    request: HttpRequest,
    signal: AbortSignal,
  ): Promise<Dispatcher.ResponseData> {
    signal.throwIfAborted();
    try {
      return await pool.request({
        method: request.method,
        path: this.endpoint.pathTo(request.path),
        headers: {
          accept: 'application/json, text/event-stream',
          ...(request.body !== undefined && { 'content-type': 'application/json' }),
          ...(this.#authorization !== null && { authorization: this.#authorization }),
          ...(request.requestId !== undefined && { 'x-request-id': request.requestId }),
          ...lowerCased(request.headers),
        },
        ...(request.body !== undefined && { body: JSON.stringify(request.body) }),
        signal,
      });
    } catch (error) {
      signal.throwIfAborted();
      throw transportError(error, this.origin(request.requestId ?? null));
    }
  }
}

export function isSuccess(status: number): boolean {
  return status >= 200 && status < 300;
}

function retryAfterOf(answer: Dispatcher.ResponseData): string | null {
  const value = answer.headers['retry-after'];
  return typeof value === 'string' ? value : null;
}

async function limitedText(answer: Dispatcher.ResponseData): Promise<string> {
  const pieces: Buffer[] = [];
  let size = 0;
  try {
    for await (const piece of answer.body as AsyncIterable<Buffer>) {
      pieces.push(piece);
      size += piece.length;
      if (size >= errorBodyBytes) break;
    }
  } catch {
    // The status alone says what is to be said.
  }
  return Buffer.concat(pieces).toString('utf8');
}

function lowerCased(headers: Readonly<Record<string, string>> = {}): Record<string, string> {
  return Object.fromEntries(
    Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value]),
  );
}
