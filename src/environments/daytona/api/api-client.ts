/**
 * HTTP to the API and to the toolbox of a sandbox, with retries by class of failure. A request that reads, or that may be made twice, is tried again after
 * lost connections, 408, 429 and 5xx; any other only where the service has certainly not begun on it (429, or no connection). What may have been done is
 * said by `ApiError.mayBeDone`, and the caller looks.
 */
import type { Readable } from 'node:stream';
import { Agent, request, type Dispatcher } from 'undici';
import type { Clock } from '../../../core/clock.ts';
import { LinkedAbort } from '../../../core/linked-abort.ts';
import type { CompiledDaytonaOptions } from '../options.ts';
import { ApiError, errorWords } from './api-error.ts';

const maxAttempts = 6;
const callLimitMs = 60_000;
const firstWaitMs = 500;
const maxWaitMs = 30_000;
/** Never left to the service: a wait that is longer is for the caller's deadline to judge. */
const maxRetryAfterMs = 120_000;

export interface ApiRequest {
  readonly method: 'GET' | 'POST' | 'PUT' | 'DELETE';
  /** Absolute, or a path below the API's base. */
  readonly url: string;
  readonly query?: Readonly<Record<string, string | number | undefined>>;
  readonly json?: unknown;
  /** Made anew for every attempt. */
  readonly body?: () => Readable | Buffer;
  readonly headers?: Readonly<Record<string, string>>;
  readonly signal: AbortSignal;
  /** For one attempt; default one minute. */
  readonly limitMs?: number;
  /** May be made twice though it is a POST. */
  readonly isIdempotent?: boolean;
  /** A 429 is for the caller to judge. */
  readonly leavesThrottle?: boolean;
}

export class ApiClient {
  readonly #base: string;
  readonly #headers: Readonly<Record<string, string>>;
  readonly #clock: Clock;
  readonly #agent = new Agent({
    connections: 128,
    pipelining: 1,
    headersTimeout: 0,
    bodyTimeout: 0,
  });

  constructor(options: CompiledDaytonaOptions, clock: Clock) {
    this.#base = options.apiUrl.replace(/\/+$/, '');
    this.#clock = clock;
    const isKey = options.apiKey !== null;
    this.#headers = {
      authorization: `Bearer ${options.apiKey ?? options.jwtToken ?? ''}`,
      'user-agent': 'slipway',
      'x-daytona-source': 'slipway',
      ...(!isKey && options.organizationId !== null
        ? { 'x-daytona-organization-id': options.organizationId }
        : {}),
    };
  }

  /** What every request and every stream of ours carries. */
  get headers(): Readonly<Record<string, string>> {
    return this.#headers;
  }

  /** The answer's JSON; undefined when it is empty. */
  async json(asked: ApiRequest): Promise<unknown> {
    return await this.#tried(asked, async (answer) => {
      const text = await answer.body.text();
      return text === '' ? undefined : (JSON.parse(text) as unknown);
    });
  }

  /** The answer's body, for the caller to read to its end or to destroy. */
  async stream(asked: ApiRequest): Promise<Readable> {
    return await this.#tried(asked, (answer) => Promise.resolve(answer.body));
  }

  async close(): Promise<void> {
    await this.#agent.destroy();
  }

  async #tried<T>(
    asked: ApiRequest,
    read: (answer: Dispatcher.ResponseData) => Promise<T>,
  ): Promise<T> {
    for (let attempt = 1; ; attempt += 1)
      try {
        return await this.#once(asked, read);
      } catch (error) {
        asked.signal.throwIfAborted();
        if (!(error instanceof ApiError) || attempt === maxAttempts || !mayRepeat(asked, error))
          throw error;
        await this.#clock.sleep(waitOf(error, attempt), asked.signal);
      }
  }

  async #once<T>(
    asked: ApiRequest,
    read: (answer: Dispatcher.ResponseData) => Promise<T>,
  ): Promise<T> {
    const limitMs = asked.limitMs ?? callLimitMs;
    const limit = new LinkedAbort([asked.signal], {
      ms: limitMs,
      reason: () => noAnswer(`no answer within ${limitMs} ms`),
    });
    const url = new URL(/^https?:/.test(asked.url) ? asked.url : this.#base + asked.url);
    for (const [name, value] of Object.entries(asked.query ?? {}))
      if (value !== undefined) url.searchParams.set(name, String(value));
    try {
      const answer = await request(url, {
        dispatcher: this.#agent,
        method: asked.method,
        headers: {
          ...this.#headers,
          ...(asked.json === undefined ? {} : { 'content-type': 'application/json' }),
          ...asked.headers,
        },
        body: asked.json === undefined ? (asked.body?.() ?? null) : JSON.stringify(asked.json),
        signal: limit.signal,
      });
      if (answer.statusCode >= 400) throw await refusal(answer);
      return await read(answer);
    } catch (error) {
      asked.signal.throwIfAborted();
      if (error instanceof ApiError) throw error;
      throw noAnswer(wordsOf(error), error);
    } finally {
      limit[Symbol.dispose]();
    }
  }
}

async function refusal(answer: Dispatcher.ResponseData): Promise<ApiError> {
  const { message, code } = errorWords(await answer.body.text().catch(() => ''));
  const after = Number(answer.headers['retry-after']);
  const status = answer.statusCode;
  return new ApiError(`${message || 'no reason given'} (status ${status})`, {
    status,
    code,
    retryAfterMs: Number.isFinite(after) && after >= 0 ? after * 1000 : null,
    mayBeDone: status >= 500 || status === 408,
  });
}

const unsent = new Set(['ECONNREFUSED', 'ENOTFOUND', 'EAI_AGAIN', 'UND_ERR_CONNECT_TIMEOUT']);

function noAnswer(message: string, cause?: unknown): ApiError {
  const code = (cause as NodeJS.ErrnoException | undefined)?.code ?? '';
  return new ApiError(message, { status: 0, code, mayBeDone: !unsent.has(code), cause });
}

function wordsOf(error: unknown): string {
  const { message, code = 'the connection failed' } = error as NodeJS.ErrnoException;
  return message === '' ? code : message;
}

function mayRepeat(asked: ApiRequest, error: ApiError): boolean {
  const isPassing =
    error.status === 0 || error.status === 408 || error.status === 429 || error.status >= 500;
  if (!isPassing || (error.status === 429 && asked.leavesThrottle === true)) return false;
  return asked.method !== 'POST' || asked.isIdempotent === true || !error.mayBeDone;
}

/** Doubling, with half of it by chance so that many callers do not come back at once. */
function waitOf(error: ApiError, attempt: number): number {
  if (error.retryAfterMs !== null)
    return Math.min(error.retryAfterMs, maxRetryAfterMs) * (1 + Math.random() / 4);
  const full = Math.min(firstWaitMs * 2 ** (attempt - 1), maxWaitMs);
  return full / 2 + (Math.random() * full) / 2;
}
