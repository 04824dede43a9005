import { STATUS_CODES } from 'node:http';
import { errorRegistry, type ErrorCode } from '../core/error-registry.ts';
import { RolloutError } from '../core/errors.ts';
import type { ErrorDocument, ValidationProblem } from '../wire/api/common.ts';

/** A request that is answered with something else than what it asked for. */
export class Refusal extends Error {
  override readonly name = 'Refusal';
  readonly status: number;
  readonly body: ErrorDocument | { readonly detail: readonly ValidationProblem[] };
  readonly headers: Readonly<Record<string, string>>;

  constructor(
    status: number,
    body: string | Refusal['body'],
    headers: Readonly<Record<string, string>> = {},
  ) {
    const document = typeof body === 'string' ? { detail: body } : body;
    super(typeof document.detail === 'string' ? document.detail : 'the request is not valid');
    this.status = status;
    this.body = document;
    this.headers = headers;
  }
}

/** By a code of the registry, whose row names the status. */
export function refuse(
  code: ErrorCode,
  detail: string,
  headers: Readonly<Record<string, string>> = {},
): Refusal {
  return new Refusal(errorRegistry[code].httpStatus, { detail, code }, headers);
}

export function invalid(problems: readonly ValidationProblem[]): Refusal {
  return new Refusal(422, { detail: problems });
}

const retryAfterS = '5';

/** What anything that was thrown looks like from outside. Messages of our own about our own are for the log, not for callers. */
export function refusalOf(error: unknown): Refusal {
  if (error instanceof Refusal) return error;
  if (error instanceof RolloutError) return refusalOfRolloutError(error);
  const { statusCode, code } = error as {
    readonly statusCode?: unknown;
    readonly code?: unknown;
  };
  if (code === 'FST_ERR_CTP_BODY_TOO_LARGE')
    return refuse('BODY_TOO_LARGE', errorRegistry.BODY_TOO_LARGE.summary, { connection: 'close' });
  if (typeof statusCode === 'number' && statusCode >= 400 && statusCode < 500)
    return new Refusal(statusCode, STATUS_CODES[statusCode] ?? 'Bad Request');
  return refuse('INTERNAL', 'Internal server error');
}

function refusalOfRolloutError(error: RolloutError): Refusal {
  const { category, httpStatus, summary } = errorRegistry[error.code];
  if (category === 'input') return refuse(error.code, error.message);
  if (category === 'infrastructure')
    return new Refusal(
      503,
      { detail: summary, code: error.code },
      error.retryable ? { 'retry-after': retryAfterS } : {},
    );
  return new Refusal(httpStatus, { detail: summary, code: error.code });
}
