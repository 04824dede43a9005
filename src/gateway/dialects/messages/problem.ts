/**
 * Errors as clients of Messages read them. The status decides what they do: 400 for a prompt that is too long makes Claude Code compact its history, 403 makes it
 * stop at once where 401 is tried again for minutes, 429 and 529 are tried again later. `x-should-retry` tells the vendor's libraries the same.
 */
import type { DialectProblem, ProblemAnswer } from '../dialect.ts';

interface Verdict {
  readonly status: number;
  readonly type: string;
  /** Another try of the same request cannot end otherwise. */
  readonly isFinal: boolean;
}

const typeOfStatus: Readonly<Record<number, string | undefined>> = {
  402: 'billing_error',
  403: 'permission_error',
  404: 'not_found_error',
  413: 'request_too_large',
  429: 'rate_limit_error',
  503: 'overloaded_error',
  504: 'timeout_error',
  529: 'overloaded_error',
};

export function problemAnswer(problem: DialectProblem, requestId: string): ProblemAnswer {
  const { status, isFinal } = verdictOn(problem);
  return {
    status,
    body: { type: 'error', error: errorOf(problem), request_id: requestId },
    headers: {
      'request-id': requestId,
      ...(isFinal && { 'x-should-retry': 'false' }),
      ...(problem.retryAfter !== null && { 'retry-after': problem.retryAfter }),
    },
  };
}

/**
 * As the last event of a stream. There is no status in a stream: Claude Code tries again what is called overloaded, and ends its run at any other failure when
 * it may not ask for whole answers.
 */
export function streamedErrorOf(problem: DialectProblem): ReturnType<typeof errorOf> {
  const error = errorOf(problem);
  return verdictOn(problem).isFinal ? error : { ...error, type: 'overloaded_error' };
}

/** As it stands in an answer of its own. */
export function errorOf(problem: DialectProblem): {
  readonly type: string;
  readonly message: string;
} {
  return { type: verdictOn(problem).type, message: messageOf(problem) };
}

function verdictOn({ kind, status }: DialectProblem): Verdict {
  switch (kind) {
    case 'invalid':
    case 'context-overflow':
      return verdict(400, { isFinal: true });
    case 'too-large':
      return verdict(413, { isFinal: true });
    case 'not-found':
      return verdict(404, { isFinal: true });
    case 'method':
      return verdict(405, { isFinal: true });
    // A budget that is used up is no rate: who waits for it waits for ever.
    case 'unauthorized':
    case 'limit':
      return verdict(403, { isFinal: true });
    case 'overloaded':
      return verdict(status === 429 ? 429 : 529, { isFinal: false });
    case 'upstream':
      return upstreamVerdict(status);
  }
}

/** The upstream's own status where these clients know what to do with it. A key that it refuses is ours, and no other try has another one. */
function upstreamVerdict(status: number | null): Verdict {
  if (status === null || status < 400) return verdict(502, { isFinal: false });
  if (status === 401 || status === 403) return verdict(403, { isFinal: true });
  if (status === 408) return verdict(504, { isFinal: false });
  if (status >= 500 || status === 429) return verdict(status, { isFinal: false });
  return verdict(typeOfStatus[status] === undefined ? 400 : status, { isFinal: true });
}

function verdict(status: number, { isFinal }: { readonly isFinal: boolean }): Verdict {
  const other = status < 500 ? 'invalid_request_error' : 'api_error';
  return { status, type: typeOfStatus[status] ?? other, isFinal };
}

function messageOf({ kind, message, field, tokens }: DialectProblem): string {
  if (kind === 'context-overflow')
    return tokens === null
      ? `prompt is too long: ${message}`
      : `prompt is too long: ${tokens.asked} tokens > ${tokens.limit} maximum`;
  return field === null || message.startsWith(field) ? message : `${field}: ${message}`;
}
