/** Refusals of the gateway in the shape that OpenAI clients read, and an upstream's refusals brought into it where they have another. */
import type { ServerResponse } from 'node:http';
import type { ProblemAnswer } from './dialects/dialect.ts';

/** More of a message would be a page of HTML. */
const longestMessage = 2_000;

export interface GatewayError {
  readonly status: number;
  readonly code: string;
  readonly message: string;
  readonly headers?: Readonly<Record<string, string>>;
}

export const ownDefect: GatewayError = { status: 500, code: 'INTERNAL', message: 'a defect' };

export function bodyTooLarge(limitBytes: number): GatewayError {
  return {
    ...{ status: 413, code: 'BODY_TOO_LARGE' },
    message: `the request is larger than ${limitBytes} bytes`,
  };
}

export function errorBody(error: GatewayError): string {
  const { message, code, status } = error;
  return JSON.stringify({ error: { message, type: typeOf(status), param: null, code } });
}

/** The whole answer. The connection stays open only where nothing of the request is left to come. */
export function sendError(response: ServerResponse, error: GatewayError): void {
  const body = errorBody(error);
  response.writeHead(error.status, {
    'content-type': 'application/json',
    'content-length': Buffer.byteLength(body),
    ...error.headers,
  });
  response.end(body);
}

/** The whole answer in a dialect's own shape. */
export function sendProblem(
  response: ServerResponse,
  { status, body, headers }: ProblemAnswer,
): void {
  const text = JSON.stringify(body);
  response.writeHead(status, {
    'content-type': 'application/json',
    'content-length': Buffer.byteLength(text),
    ...headers,
  });
  response.end(text);
}

/**
 * What an upstream said with a status that is no success: kept as it is where an OpenAI client (or one of SGLang) finds its way in it, else put into
 * that shape.
 */
export function upstreamRefusal(
  status: number,
  text: string,
): { readonly message: string; readonly body: string | null } {
  const document = parsed(text);
  const message = messageIn(document) ?? (text.trim() === '' ? `status ${status}` : text.trim());
  const short = message.slice(0, longestMessage);
  const isReadable =
    document !== null && (isObject(document['error']) || document['object'] === 'error');
  return {
    message: short,
    body: isReadable ? null : errorBody({ status, code: 'upstream_refused', message: short }),
  };
}

/** `code` as `codeOf` gives it. */
export function noAnswer(code: string): string {
  return `the model's address gives no answer (${code})`;
}

/** What a connection failed of. Never the message, which may hold an address. */
export function codeOf(error: Error): string {
  const { code, cause } = error as { readonly code?: unknown; readonly cause?: unknown };
  if (typeof code === 'string') return code;
  return cause instanceof Error ? codeOf(cause) : error.name;
}

function typeOf(status: number): string {
  if (status === 401) return 'authentication_error';
  if (status === 403) return 'permission_error';
  if (status === 404) return 'not_found_error';
  if (status === 429) return 'rate_limit_error';
  return status < 500 ? 'invalid_request_error' : 'api_error';
}

function parsed(text: string): Readonly<Record<string, unknown>> | null {
  try {
    const value: unknown = JSON.parse(text);
    return isObject(value) ? value : null;
  } catch {
    return null;
  }
}

function messageIn(document: Readonly<Record<string, unknown>> | null): string | null {
  if (document === null) return null;
  const { error, message, detail } = document;
  for (const value of [isObject(error) ? error['message'] : error, message, detail])
    if (typeof value === 'string' && value !== '') return value;
  return detail === undefined ? null : JSON.stringify(detail);
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
