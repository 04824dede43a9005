/**
 * Reading over HTTP with deadlines, bounded bodies and retries. Passing faults (no connection, a deadline, 429, 5xx, an expired
 * session) are tried again three times after 0.5, 1 and 2 s. Addresses and headers never enter a message.
 */
import type { z } from 'zod';
import type { Clock } from '../../core/clock.ts';
import { attribute, isRolloutError, RolloutError } from '../../core/errors.ts';
import { LinkedAbort } from '../../core/linked-abort.ts';
import { registryProblemSchema } from '../../wire/harbor/registry.ts';

export type Fetch = typeof fetch;

export interface HttpRequestsOptions {
  readonly fetch: Fetch;
  readonly clock: Clock;
  /** Whole exchange of a document. Default 30 s. */
  readonly timeoutMs?: number;
  /** Longest silence during a download. Default 120 s. */
  readonly idleTimeoutMs?: number;
}

export interface HttpRequest {
  readonly url: string;
  readonly method?: 'GET' | 'POST';
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string;
  /** Default false: then a redirection is a failure, because keys are for one host only. */
  readonly followsRedirects?: boolean;
  /** What is asked for, for messages: `dataset rows`. */
  readonly what: string;
  readonly signal: AbortSignal;
}

const pausesMs = [500, 1000, 2000];
const maxDocumentBytes = 64 * 1024 * 1024;
const maxProblemBytes = 64 * 1024;
/** PostgREST's words for a session that is gone or not yet valid. */
const sessionProblems = new Set(['PGRST301', 'PGRST302', 'PGRST303']);

export class HttpRequests {
  readonly #fetch: Fetch;
  readonly #clock: Clock;
  readonly #timeoutMs: number;
  readonly #idleTimeoutMs: number;

  constructor(options: HttpRequestsOptions) {
    this.#fetch = options.fetch;
    this.#clock = options.clock;
    this.#timeoutMs = options.timeoutMs ?? 30_000;
    this.#idleTimeoutMs = options.idleTimeoutMs ?? 120_000;
  }

  /** A JSON document. Throws REGISTRY_UNAVAILABLE, also when it does not have the form of `schema`. */
  async json<T extends z.ZodType>(request: HttpRequest, schema: T): Promise<z.output<T>> {
    const text = await this.#retrying(request, async () => {
      using link = new LinkedAbort([request.signal], {
        ms: this.#timeoutMs,
        reason: () => unavailable(`${request.what}: no answer within ${this.#timeoutMs} ms`),
      });
      const response = await this.#exchange(request, link.signal);
      return await readText(response, maxDocumentBytes, request.what);
    });
    const document = schema.safeParse(parseJson(text, request.what));
    if (document.success) return document.data;
    const [issue] = document.error.issues;
    throw unavailable(
      `${request.what}: not in the registry's format at ${issue?.path.join('.') ?? '?'}`,
      false,
    );
  }

  /**
   * A download: `consume` gets the body as chunks and must read it to its end or throw. It is called again, from the
   * start, after a passing fault.
   */
  async download<T>(
    request: HttpRequest,
    consume: (chunks: AsyncIterable<Uint8Array>, signal: AbortSignal) => Promise<T>,
  ): Promise<T> {
    return this.#retrying(request, async () => {
      using link = new LinkedAbort([request.signal]);
      const idle = setTimeout(
        () => link.abort(unavailable(`${request.what}: silent for ${this.#idleTimeoutMs} ms`)),
        this.#idleTimeoutMs,
      );
      try {
        const response = await this.#exchange(request, link.signal);
        return await consume(chunksOf(response, idle, request.what), link.signal);
      } catch (error) {
        link.signal.throwIfAborted();
        throw error;
      } finally {
        clearTimeout(idle);
        link.abort(unavailable(`${request.what}: left before its end`)); // frees the connection of a body nobody reads on
      }
    });
  }

  /** One attempt whose failure nobody hears of. */
  async tell(request: HttpRequest, timeoutMs: number): Promise<void> {
    using link = new LinkedAbort([request.signal], {
      ms: timeoutMs,
      reason: () => unavailable(`${request.what}: no answer`),
    });
    try {
      await (await this.#exchange(request, link.signal)).body?.cancel();
    } catch {
      // Best effort by contract; the caller's own signal is noticed by its next step.
    }
  }

  async #exchange(request: HttpRequest, signal: AbortSignal): Promise<Response> {
    let response: Response;
    try {
      response = await this.#fetch(request.url, {
        method: request.method ?? 'GET',
        headers: { accept: 'application/json, */*', ...request.headers },
        ...(request.body === undefined ? {} : { body: request.body }),
        redirect: request.followsRedirects === true ? 'follow' : 'error',
        signal,
      });
    } catch (error) {
      signal.throwIfAborted();
      throw unavailable(`${request.what}: ${systemCode(error)}`, true, error);
    }
    if (response.ok) return response;
    throw await refusal(response, request.what);
  }

  async #retrying<T>(request: HttpRequest, attempt: () => Promise<T>): Promise<T> {
    for (const pauseMs of [...pausesMs, null]) {
      try {
        return await attempt();
      } catch (error) {
        request.signal.throwIfAborted();
        const failure = attribute(error, 'REGISTRY_UNAVAILABLE', 'resolve', request.what);
        const isPassing = isRolloutError(failure, 'REGISTRY_UNAVAILABLE') && failure.retryable;
        if (pauseMs === null || !isPassing) throw failure;
        await this.#clock.sleep(pauseMs, request.signal);
      }
    }
    throw new TypeError('the last attempt always answers or throws');
  }
}

/** `isPassing`: whether the same request may succeed later. */
export function unavailable(message: string, isPassing = true, cause?: unknown): RolloutError {
  return new RolloutError('REGISTRY_UNAVAILABLE', message, {
    phase: 'resolve',
    retryable: isPassing,
    cause,
    remedy: isPassing
      ? 'Check that the registry can be reached from here, then try again.'
      : 'Check the address and the key of the registry.',
  });
}

async function refusal(response: Response, what: string): Promise<RolloutError> {
  const text = await readText(response, maxProblemBytes, what).catch(() => '');
  const problem = registryProblemSchema.safeParse(parseJsonOrNull(text));
  const code = problem.success ? problem.data.code : null;
  const isPassing =
    response.status >= 500 ||
    response.status === 429 ||
    response.status === 408 ||
    (code !== null && sessionProblems.has(code));
  const named = code !== null && /^[A-Za-z0-9_]{1,24}$/.test(code) ? ` (${code})` : '';
  return unavailable(`${what}: HTTP ${response.status}${named}`, isPassing);
}

async function* chunksOf(
  response: Response,
  idle: NodeJS.Timeout,
  what: string,
): AsyncGenerator<Uint8Array> {
  if (response.body === null) return;
  try {
    for await (const chunk of response.body as unknown as AsyncIterable<Uint8Array>) {
      idle.refresh();
      yield chunk;
    }
  } catch (error) {
    throw unavailable(`${what}: ${systemCode(error)}`, true, error);
  }
}

async function readText(response: Response, limit: number, what: string): Promise<string> {
  const chunks: Uint8Array[] = [];
  let size = 0;
  if (response.body === null) return '';
  for await (const chunk of response.body as unknown as AsyncIterable<Uint8Array>) {
    size += chunk.length;
    if (size > limit) throw unavailable(`${what}: larger than ${limit} bytes`, false);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString('utf8');
}

function parseJson(text: string, what: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    throw unavailable(`${what}: the answer is not JSON`, false);
  }
}

function parseJsonOrNull(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return null;
  }
}

/** `ECONNREFUSED` and the like, never the text, which may hold an address. */
function systemCode(error: unknown): string {
  for (let at: unknown = error; at instanceof Error; at = at.cause) {
    const { code } = at as NodeJS.ErrnoException;
    if (typeof code === 'string') return code;
  }
  return 'the connection broke';
}
