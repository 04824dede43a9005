/** Failures as OpenAI's clients of chat read them, with the statuses that relayed calls have. */
import { errorBody, type GatewayError } from '../../gateway-error.ts';
import type { DialectProblem, ProblemAnswer } from '../dialect.ts';

const rows: Readonly<Record<DialectProblem['kind'], Pick<GatewayError, 'status' | 'code'>>> = {
  invalid: { status: 400, code: 'invalid_request' },
  'too-large': { status: 413, code: 'BODY_TOO_LARGE' },
  unauthorized: { status: 401, code: 'ROUTE_KEY_INVALID' },
  'not-found': { status: 404, code: 'not_found' },
  method: { status: 405, code: 'method_not_allowed' },
  'context-overflow': { status: 400, code: 'context_length_exceeded' },
  overloaded: { status: 429, code: 'rate_limit_exceeded' },
  limit: { status: 403, code: 'BUDGET_EXHAUSTED' },
  upstream: { status: 502, code: 'upstream_refused' },
};

export function problemAnswer(problem: DialectProblem): ProblemAnswer {
  const { status, retryAfter } = problem;
  const error = errorOf(problem);
  const isUpstreams = problem.kind === 'upstream' || problem.kind === 'overloaded';
  return {
    status: isUpstreams && status !== null && status >= 400 ? status : rows[problem.kind].status,
    body: { error },
    headers: retryAfter === null ? {} : { 'retry-after': retryAfter },
  };
}

/** As it stands in an answer of its own, and in a stream. */
export function errorOf({
  kind,
  message,
  field,
}: DialectProblem): Readonly<Record<string, unknown>> {
  const { error } = JSON.parse(errorBody({ ...rows[kind], message })) as {
    readonly error: Readonly<Record<string, unknown>>;
  };
  return { ...error, param: field };
}
