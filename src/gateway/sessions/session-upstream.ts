/** HTTP to the engine, or the router before engines, that sessions ask. */
import type { IncomingHttpHeaders } from 'node:http';
import type { Readable } from 'node:stream';
import { Pool, type Dispatcher } from 'undici';
import { RolloutError } from '../../core/errors.ts';
import { parseEndpoint, type Endpoint } from '../../engines/shared/endpoint.ts';
import { hopByHopHeaders } from '../../wire/hop-by-hop-headers.ts';

export interface SessionUpstreamOptions {
  /** Without `/v1`. */
  readonly url: string;
  /** null = what the caller sends as its own goes on. */
  readonly key: string | null;
  /** Whether callers show keys of ours, which are nobody else's business. */
  readonly hidesCallers: boolean;
  /** Until an answer begins, and of silence in it. */
  readonly timeoutMs: number;
}

export interface UpstreamRequest {
  readonly method: string;
  /** With its query. */
  readonly path: string;
  readonly headers: IncomingHttpHeaders;
  readonly extraHeaders?: Readonly<Record<string, string>>;
  readonly body: string | Buffer | Readable | null;
}

export type UpstreamAnswer = Dispatcher.ResponseData;

const connections = 1_024;
/** What a proxy says for itself; answers come as they are, not packed. */
const notForwarded = new Set([
  ...hopByHopHeaders,
  'host',
  'content-length',
  'accept-encoding',
  'expect',
]);

export class SessionUpstream {
  readonly #options: SessionUpstreamOptions;
  readonly #endpoint: Endpoint;
  readonly #pool: Pool;

  /** CONFIG_INVALID for an address that is none. */
  constructor(options: SessionUpstreamOptions) {
    const { url, key, timeoutMs } = options;
    this.#options = options;
    this.#endpoint = parseEndpoint(url, key);
    this.#pool = new Pool(this.#endpoint.origin, {
      ...{ connections, pipelining: 1, allowH2: false },
      ...{ headersTimeout: timeoutMs, bodyTimeout: timeoutMs, keepAliveTimeout: 4_000 },
      keepAliveMaxTimeout: 4_000,
      connect: { timeout: 10_000, keepAlive: true, keepAliveInitialDelay: 30_000 },
    });
  }

  /** ENGINE_UNAVAILABLE when no answer comes. */
  async ask(request: UpstreamRequest, signal: AbortSignal): Promise<UpstreamAnswer> {
    const { method, path, body } = request;
    try {
      return await this.#pool.request({
        ...{ method, path: this.#endpoint.pathTo(path), body },
        ...{ signal, headers: this.#headersOf(request) },
      });
    } catch (error) {
      throw this.#transportError(error, signal);
    }
  }

  /** The whole of an answer. ENGINE_UNAVAILABLE when it breaks off. */
  async text(answer: UpstreamAnswer, signal: AbortSignal): Promise<string> {
    try {
      return await answer.body.text();
    } catch (error) {
      throw this.#transportError(error, signal);
    }
  }

  async close(): Promise<void> {
    await this.#pool.destroy();
  }

  #headersOf({ headers, extraHeaders = {} }: UpstreamRequest): Record<string, string | string[]> {
    const { key, hidesCallers } = this.#options;
    const authorization = key === null ? this.#endpoint.authorization : `Bearer ${key}`;
    const named = new Set((headers.connection ?? '').toLowerCase().split(/\s*,\s*/));
    const kept: Record<string, string | string[]> = {};
    for (const [name, value] of Object.entries(headers)) {
      const isOurs = name === 'authorization' && (hidesCallers || authorization !== null);
      if (value === undefined || isOurs || notForwarded.has(name) || named.has(name)) continue;
      kept[name] = value;
    }
    return { ...kept, ...(authorization !== null && { authorization }), ...extraHeaders };
  }

  #transportError(error: unknown, signal: AbortSignal): Error {
    if (signal.aborted) return signal.reason as Error;
    const { name, code, message } = error as NodeJS.ErrnoException;
    const detail = message === '' ? (code ?? '') : message;
    return new RolloutError('ENGINE_UNAVAILABLE', `backend transport error: ${name}: ${detail}`, {
      phase: 'model-call',
      cause: error,
    });
  }
}

const notAnswered = new Set([...hopByHopHeaders, 'content-length', 'server', 'date']);

/** Headers of an answer that go on to the client. */
export function answerHeaders(headers: IncomingHttpHeaders): Record<string, string | string[]> {
  const kept: Record<string, string | string[]> = {};
  for (const [name, value] of Object.entries(headers))
    if (value !== undefined && !notAnswered.has(name)) kept[name] = value;
  return kept;
}
