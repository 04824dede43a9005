/** What is asked of an upstream, and who hears of the answer. */
import type { AnswerSink } from './answer-reader.ts';
import type { RequestHeaders } from './request-headers.ts';
import { UpstreamError } from './upstream-error.ts';

/** A body that is still on its way. */
export interface BodySource {
  /** As it was declared; null = unknown. */
  readonly length: number | null;
  /** Once: every piece goes to `taker`, until it says that it has no room. */
  start(taker: BodyTaker): void;
  /** There is room again. */
  resume(): void;
}

export interface BodyTaker {
  /** False = the next one waits for `resume`. */
  piece(bytes: Buffer): boolean;
  end(): void;
}

export interface UpstreamRequest {
  /** Scheme, host and port. */
  readonly origin: string;
  readonly method: 'GET' | 'POST';
  /** Path and query. */
  readonly path: string;
  readonly headers: RequestHeaders;
  readonly body: Buffer | BodySource | null;
}

/** After `ended` or `failed`, of which there is one, nothing comes; after an abort neither does. */
export interface UpstreamSink extends AnswerSink {
  ended(): void;
  failed(error: Error): void;
}

/** The request under way. */
export interface UpstreamExchange {
  /** The answer is read no further until `resume`. */
  pause(): void;
  resume(): void;
  /** Closes its connection. Idempotent, and nothing where it has ended. */
  abort(): void;
}

/** Latin-1. Throws UpstreamError where it would be more than one request. */
export function requestHead(request: UpstreamRequest, host: string): string {
  const { method, path, headers, body } = request;
  if (/[\u0000-\u0020\u007f]|[^\u0000-\u00ff]/.test(path) || !path.startsWith('/'))
    throw new UpstreamError('INVALID_REQUEST', 'the path cannot stand in a request');
  const length = body === null || Buffer.isBuffer(body) ? (body?.length ?? null) : body.length;
  const coded = body === null ? '' : 'transfer-encoding: chunked\r\n';
  const framing = length === null ? coded : `content-length: ${length}\r\n`;
  return `${method} ${path} HTTP/1.1\r\nhost: ${host}\r\nconnection: keep-alive\r\n${headers.text}${framing}\r\n`;
}
