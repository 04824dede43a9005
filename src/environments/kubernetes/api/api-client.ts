/**
 * The HTTP side of the Kubernetes API. Every call of ours may be sent twice: reads, removals, and creations under a name that we chose. So what is refused for
 * now (429, with its Retry-After), fails on the server's side, or is never answered, is sent again a few times; a creation whose first answer was lost then
 * ends as a conflict, which its caller looks at. Everything thrown is an `ApiError`, a system error or the reason of the caller's signal.
 */
import { Agent, request, type Dispatcher } from 'undici';
import { z } from 'zod';
import { cutText } from '../../../core/cut-text.ts';
import { RolloutError } from '../../../core/errors.ts';
import { LinkedAbort } from '../../../core/linked-abort.ts';
import type { ClusterAccess, Credentials } from '../access/cluster-access.ts';
import type { KubernetesPorts } from '../options.ts';
import { ApiError, isConnectionError } from './api-error.ts';

export interface ApiCall {
  readonly method: 'GET' | 'POST' | 'PUT' | 'DELETE';
  /** From the root, for example `/api/v1/namespaces/default/pods`. */
  readonly path: string;
  readonly query?: Readonly<Record<string, string | number | boolean | undefined>>;
  readonly body?: unknown;
  readonly signal: AbortSignal;
  /** Bound of one try; default 30 s. */
  readonly timeoutMs?: number;
  /** Tries at most; default 5. */
  readonly tries?: number;
  /** A creation that counts: a 429 is its caller's, and each further try is awaited here first. */
  readonly admit?: (signal: AbortSignal) => Promise<void>;
}

const statusDocument = z.object({
  message: z.string().default(''),
  reason: z.string().default(''),
  details: z.object({ retryAfterSeconds: z.number().optional() }).nullish(),
});

const tryMs = 30_000;
const firstPauseMs = 250;
const longestPauseMs = 8_000;
/** A server that asks for more is asked again by whoever wanted it. */
const longestAskedMs = 30_000;
const maxErrorChars = 2000;
const userAgent = 'slipway';

export class ApiClient {
  readonly access: ClusterAccess;
  readonly #ports: Pick<KubernetesPorts, 'clock' | 'random'>;
  #agent: { readonly key: string; readonly agent: Agent } | null = null;

  constructor(access: ClusterAccess, ports: Pick<KubernetesPorts, 'clock' | 'random'>) {
    this.access = access;
    this.#ports = ports;
  }

  /** A call with a JSON answer. */
  async json(call: ApiCall): Promise<unknown> {
    const tries = call.tries ?? 5;
    let isRefused = false;
    for (let count = 1; ; count += 1)
      try {
        return await this.#once(call, isRefused);
      } catch (error) {
        call.signal.throwIfAborted();
        const isUnknownUser = error instanceof ApiError && error.status === 401;
        const pauseMs = isUnknownUser && !isRefused ? 0 : this.#pauseAfter(error, count, call);
        if (count >= tries || pauseMs === null) throw error;
        isRefused = isUnknownUser;
        await this.#ports.clock.sleep(pauseMs, call.signal);
        await call.admit?.(call.signal);
      }
  }

  /** An answer that is read as it comes, until it ends or the signal fires. */
  async stream(call: ApiCall): Promise<Dispatcher.ResponseData['body']> {
    const response = await this.#send(call, { isRefused: false, signal: call.signal });
    if (response.statusCode < 400) return response.body;
    throw await errorOf(response);
  }

  /** What a connection of another kind needs. */
  async connection(options: {
    readonly isRefused: boolean;
    readonly signal: AbortSignal;
  }): Promise<{
    readonly headers: Readonly<Record<string, string>>;
    readonly tls: Readonly<Record<string, unknown>>;
  }> {
    const credentials = await this.access.credentials(options);
    return { headers: headersOf(credentials), tls: this.#tls(credentials) };
  }

  async close(): Promise<void> {
    await this.#agent?.agent.destroy();
    this.#agent = null;
  }

  async #once(call: ApiCall, isRefused: boolean): Promise<unknown> {
    const ms = call.timeoutMs ?? tryMs;
    using limit = new LinkedAbort([call.signal], { ms, reason: () => silent(call, ms) });
    const response = await this.#send(call, { isRefused, signal: limit.signal });
    if (response.statusCode >= 400) throw await errorOf(response);
    return await response.body.json();
  }

  async #send(
    call: ApiCall,
    options: { readonly isRefused: boolean; readonly signal: AbortSignal },
  ): Promise<Dispatcher.ResponseData> {
    const credentials = await this.access.credentials(options);
    try {
      return await request(this.access.server + call.path + queryOf(call.query), {
        dispatcher: this.#dispatcher(credentials),
        method: call.method,
        headers: {
          accept: 'application/json',
          'user-agent': userAgent,
          ...headersOf(credentials),
          ...(call.body === undefined ? {} : { 'content-type': 'application/json' }),
        },
        body: call.body === undefined ? null : JSON.stringify(call.body),
        signal: options.signal,
        headersTimeout: 0, // the signal is the limit
        bodyTimeout: 0,
      });
    } catch (error) {
      options.signal.throwIfAborted();
      throw error;
    }
  }

  #pauseAfter(error: unknown, count: number, call: ApiCall): number | null {
    const backoffMs =
      Math.min(longestPauseMs, firstPauseMs * 2 ** (count - 1)) * (0.5 + this.#ports.random());
    if (error instanceof ApiError) {
      if (error.status < 500 && (error.status !== 429 || call.admit !== undefined)) return null;
      const askedMs = error.retryAfterMs ?? 0;
      return askedMs > longestAskedMs ? null : Math.max(askedMs, backoffMs);
    }
    const isSilent = error instanceof RolloutError && error.retryable;
    return isSilent || isConnectionError(error) ? backoffMs : null;
  }

  /** One pool for as long as the client certificate is the same. */
  #dispatcher(credentials: Credentials): Agent {
    const key = credentials.cert ?? '';
    if (this.#agent?.key === key) return this.#agent.agent;
    void this.#agent?.agent.close();
    const agent = new Agent({
      connect: { ...this.#tls(credentials), timeout: 10_000 },
      connections: 64,
      pipelining: 1,
    });
    this.#agent = { key, agent };
    return agent;
  }

  #tls({ cert, key }: Credentials): Readonly<Record<string, unknown>> {
    return {
      ...this.access.tls,
      ...(cert !== null && { cert }),
      ...(key !== null && { key }),
    };
  }
}

export function queryOf(query: ApiCall['query']): string {
  const parameters = new URLSearchParams();
  for (const [key, value] of Object.entries(query ?? {}))
    if (value !== undefined) parameters.set(key, String(value));
  return parameters.size === 0 ? '' : `?${parameters.toString()}`;
}

function headersOf({ token }: Credentials): Readonly<Record<string, string>> {
  return token === null ? {} : { authorization: `Bearer ${token}` };
}

async function errorOf(response: Dispatcher.ResponseData): Promise<ApiError> {
  const text = await response.body.text();
  return apiErrorOf(response.statusCode, text, response.headers['retry-after']);
}

/** An error from an answer's status, body and Retry-After header. */
export function apiErrorOf(
  status: number,
  text: string,
  retryAfter: string | readonly string[] | undefined,
): ApiError {
  const document = readStatus(text);
  const seconds = Number(retryAfter ?? document?.details?.retryAfterSeconds ?? Number.NaN);
  return new ApiError(
    status,
    cutText(messageIn(text, document) ?? `status ${status}`, maxErrorChars),
    {
      reason: document?.reason ?? '',
      retryAfterMs: Number.isFinite(seconds) ? seconds * 1000 : null,
    },
  );
}

function messageIn(text: string, document: { readonly message: string } | null): string | null {
  const said = [document?.message, text.trim()].find((each) => each !== undefined && each !== '');
  return said ?? null;
}

function readStatus(text: string): z.infer<typeof statusDocument> | null {
  try {
    return statusDocument.parse(JSON.parse(text));
  } catch {
    return null; // a proxy in between
  }
}

function silent(call: ApiCall, ms: number): RolloutError {
  return new RolloutError(
    'ENVIRONMENT_UNAVAILABLE',
    `the API server did not answer ${call.method} ${call.path} in ${ms} ms`,
    { phase: 'environment', retryable: true, remedy: 'Look whether the cluster is overloaded.' },
  );
}
