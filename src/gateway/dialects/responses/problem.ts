/**
 * Failures in the dialect's words. Its most stubborn client, Codex, takes a status of 400 as final and tries everything else again up to its limits; in a stream it
 * stops at the codes `context_length_exceeded`, `insufficient_quota` and `invalid_prompt`, waits as long as the message of `rate_limit_exceeded` says, and tries
 * any other again.
 */
import type { DialectProblem, ProblemAnswer } from '../dialect.ts';

interface Row {
  readonly status: number;
  readonly type: string;
  readonly code: string;
  /** In a stream that has begun. */
  readonly streamCode: string;
}

const invalid = 'invalid_request_error';

const rows: Readonly<Record<DialectProblem['kind'], Row>> = {
  invalid: { status: 400, type: invalid, code: 'invalid_request', streamCode: 'invalid_prompt' },
  'too-large': { status: 413, type: invalid, code: 'too_large', streamCode: 'invalid_prompt' },
  unauthorized: {
    status: 400,
    type: invalid,
    code: 'invalid_api_key',
    streamCode: 'invalid_prompt',
  },
  'not-found': { status: 404, type: invalid, code: 'not_found', streamCode: 'invalid_prompt' },
  method: { status: 405, type: invalid, code: 'method_not_allowed', streamCode: 'invalid_prompt' },
  'context-overflow': {
    status: 400,
    type: invalid,
    code: 'context_length_exceeded',
    streamCode: 'context_length_exceeded',
  },
  overloaded: {
    status: 503,
    type: 'rate_limit_error',
    code: 'rate_limit_exceeded',
    streamCode: 'rate_limit_exceeded',
  },
  limit: {
    status: 400,
    type: 'insufficient_quota',
    code: 'insufficient_quota',
    streamCode: 'insufficient_quota',
  },
  upstream: {
    status: 502,
    type: 'server_error',
    code: 'server_error',
    streamCode: 'server_error',
  },
};

/** The upstream's word against what the gateway sent: another try is not answered otherwise. */
const refusedByUpstream: Row = {
  status: 400,
  type: invalid,
  code: 'upstream_refused',
  streamCode: 'invalid_prompt',
};

export function problemAnswer(problem: DialectProblem, requestId: string): ProblemAnswer {
  const { type } = rowOf(problem);
  return {
    status: statusOf(problem),
    body: {
      error: { message: messageOf(problem), type, param: problem.field, code: codeOf(problem) },
    },
    headers: {
      'x-request-id': requestId,
      ...(problem.retryAfter !== null && { 'retry-after': problem.retryAfter }),
    },
  };
}

/** `error` of a response that failed after it had begun. */
export function failureOf(problem: DialectProblem): Readonly<Record<string, unknown>> {
  const seconds = problem.kind === 'overloaded' ? Number(problem.retryAfter ?? NaN) : NaN;
  const wait = Number.isFinite(seconds) ? ` Please try again in ${seconds}s.` : '';
  return { code: rowOf(problem).streamCode, message: `${messageOf(problem)}${wait}` };
}

function rowOf({ kind, status }: DialectProblem): Row {
  const isRefusal = kind === 'upstream' && status !== null && status >= 400 && status < 500;
  return isRefusal && status !== 408 && status !== 429 ? refusedByUpstream : rows[kind];
}

function statusOf(problem: DialectProblem): number {
  const { kind, field } = problem;
  const status = problem.status ?? 0;
  if (kind === 'not-found' && field === 'previous_response_id') return 400;
  // What its own clients know how to wait for.
  if (kind === 'overloaded' && (status === 429 || status === 503)) return status;
  if (kind !== 'upstream') return rows[kind].status;
  // A key that it refuses is the gateway's, and the client has no other.
  if (status === 401 || status === 403) return refusedByUpstream.status;
  if (status === 408) return 504;
  return status >= 400 && status < 600 ? status : rows.upstream.status;
}

function codeOf(problem: DialectProblem): string {
  return problem.kind === 'not-found' && problem.field === 'previous_response_id'
    ? 'previous_response_not_found'
    : rowOf(problem).code;
}

function messageOf({ kind, message, tokens }: DialectProblem): string {
  return kind === 'context-overflow' && tokens !== null
    ? `This model's maximum context length is ${tokens.limit} tokens. However, your messages resulted in ${tokens.asked} tokens.`
    : message;
}
