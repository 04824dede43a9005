/** Failures of an engine as typed errors, decided where the bytes are seen. Messages hold a short excerpt of the answer, never a credential. */
import { messageOf, RolloutError, type ErrorCode } from '../../core/errors.ts';
import { numberOf, recordOf, textOf } from './json.ts';

const excerptChars = 300;

/** A 4xx that says one of these is a conversation too long for the model, whatever else it says. */
const overflowPhrases = [
  'context length exceeded',
  'context_length_exceeded',
  'maximum context length',
  '`inputs` tokens + `max_new_tokens`',
  "model's context length",
  'prompt is too long',
  'input is too long for requested model',
];

const keyRemedy = 'Give the key that the engine expects, usually as OPENAI_API_KEY.';

const budgetRemedy = 'Raise the limit in [gateway], or in metadata.slipway_gateway of the request.';

const loadRemedy = 'Run fewer trials at once (-n), or give the engine more room.';

/** For statuses that have one usual cause. */
const remedies: Readonly<Record<number, string | undefined>> = {
  401: keyRemedy,
  403: keyRemedy,
  404: 'Check the address, which usually ends in /v1, and the name of the model.',
  429: loadRemedy,
  500: 'The log of the engine says why.',
  503: loadRemedy,
};

export interface AnswerOrigin {
  /** For messages: the address without credentials. */
  readonly url: string;
  readonly requestId: string | null;
  readonly secrets: readonly string[];
}

export function engineError(
  code: ErrorCode,
  what: string,
  at: AnswerOrigin & {
    readonly cause?: unknown;
    readonly detail?: string | null;
    readonly remedy?: string | undefined;
  },
): RolloutError {
  const id = at.requestId === null ? '' : ` (request ${at.requestId})`;
  const detail = at.detail ?? null;
  return new RolloutError(code, `${redact(what, at.secrets)}: ${at.url}${id}`, {
    phase: 'model-call',
    ...(at.cause !== undefined && { cause: at.cause }),
    ...(detail !== null && { detail: redact(detail, at.secrets) }),
    ...(at.remedy !== undefined && { remedy: at.remedy }),
  });
}

/** The cause of an error that is a status: for who passes it on. */
export class RefusedAnswer extends Error {
  readonly status: number;
  /** The header, as it came; null = none. */
  readonly retryAfter: string | null;

  constructor(status: number, retryAfter: string | null) {
    super(`status ${status}`);
    this.status = status;
    this.retryAfter = retryAfter;
  }
}

/** An answer that is a failure by its status. `body` is the answer's text as it came. */
export function statusError(
  answer: { readonly status: number; readonly body: string; readonly retryAfter?: string | null },
  at: AnswerOrigin,
): RolloutError {
  const { status, body } = answer;
  const said = excerpt(redact(body, at.secrets));
  const what = `the engine answered ${status}${said === '' ? '' : `, ${said}`}`;
  const retryAfter = answer.retryAfter ?? null;
  const detail = retryAfter === null ? null : `retry-after: ${retryAfter}`;
  const code = statusCode(status, body);
  return engineError(code, what, {
    ...at,
    detail,
    remedy: code === 'BUDGET_EXHAUSTED' ? budgetRemedy : remedies[status],
    cause: new RefusedAnswer(status, retryAfter),
  });
}

/** An error that came inside an answer whose status was 200: `{"error": {"message", "code"}}`, or vLLM's older flat form. */
export function embeddedError(document: unknown, at: AnswerOrigin): RolloutError | null {
  const outer = recordOf(document);
  if (outer === null) return null;
  const isFlat = outer['object'] === 'error';
  const inner = isFlat ? outer : outer['error'];
  if (inner === undefined || inner === null) return null;
  const fields = recordOf(inner);
  const status = numberOf(fields?.['code']) ?? numberOf(fields?.['status_code']) ?? 500;
  const body = textOf(inner) ?? textOf(fields?.['message']) ?? JSON.stringify(inner);
  // Hosts that do not number their errors name the overflow only.
  return statusError({ status: isOverflow(body) ? 400 : status, body }, at);
}

/** What undici or the socket threw before the answer began. */
export function transportError(error: unknown, at: AnswerOrigin): RolloutError {
  if (error instanceof RolloutError) return error;
  const code = textOf((error as { code?: unknown } | null)?.code) ?? '';
  if (code.startsWith('HPE_'))
    return engineError('ENGINE_RESPONSE_INVALID', `not HTTP (${code})`, { ...at, cause: error });
  if (code === 'UND_ERR_INVALID_ARG' || error instanceof TypeError)
    return engineError('ENGINE_REQUEST_INVALID', messageOf(error), { ...at, cause: error });
  return engineError(
    'ENGINE_UNAVAILABLE',
    `the engine cannot be reached (${transportReason(error)})`,
    {
      ...at,
      cause: error,
      remedy: code.startsWith('ERR_SSL_')
        ? 'Check whether the address has to begin with http:// or https://.'
        : 'See whether the engine still runs, and correct its address if it is another one.',
    },
  );
}

/** What was thrown while the answer was read. */
export function brokenError(error: unknown, at: AnswerOrigin): RolloutError {
  if (error instanceof RolloutError) return error;
  const what = `the answer ended early (${transportReason(error)})`;
  return engineError('ENGINE_STREAM_BROKEN', what, { ...at, cause: error });
}

export function redact(text: string, secrets: readonly string[]): string {
  return secrets.reduce((rest, secret) => rest.replaceAll(secret, '***'), text);
}

function statusCode(status: number, body: string): ErrorCode {
  if (status === 403 && isOfBudget(body)) return 'BUDGET_EXHAUSTED';
  if (status === 401 || status === 403) return 'ENGINE_UNAUTHORIZED';
  if (status === 429 || status === 503) return 'ENGINE_OVERLOADED';
  if (status === 408 || status >= 500) return 'ENGINE_UNAVAILABLE';
  if ((status === 400 || status === 413 || status === 422) && isOverflow(body))
    return 'CONTEXT_OVERFLOW';
  // Redirects are not followed: an address that moves is not the one that was configured.
  return status >= 400 ? 'ENGINE_REQUEST_INVALID' : 'ENGINE_RESPONSE_INVALID';
}

/** The gateway's own refusal: no key is wrong, and nobody has to look at the engine. */
function isOfBudget(body: string): boolean {
  try {
    return recordOf(recordOf(JSON.parse(body))?.['error'])?.['code'] === 'BUDGET_EXHAUSTED';
  } catch {
    return false;
  }
}

function isOverflow(body: string): boolean {
  const text = body.toLowerCase();
  return overflowPhrases.some((phrase) => text.includes(phrase));
}

/** The message in the body when it is JSON, else its beginning; one line. */
function excerpt(body: string): string {
  let text = body;
  try {
    const document = recordOf(JSON.parse(body));
    const inner = document?.['error'] ?? document?.['detail'] ?? document;
    text = textOf(inner) ?? textOf(recordOf(inner)?.['message']) ?? body;
  } catch {
    // Not JSON: shown as it is.
  }
  const line = text.replace(/\s+/g, ' ').trim();
  // Cut in the middle of a character it would be no text.
  return line.length > excerptChars ? `${line.slice(0, excerptChars).toWellFormed()}…` : line;
}

function transportReason(error: unknown): string {
  const code = textOf((error as { code?: unknown } | null)?.code);
  // OpenSSL's message is a path of its own sources, and what the code says already.
  if (code?.startsWith('ERR_SSL_') === true) return code;
  const message = messageOf(error);
  return code === null || message.includes(code) ? message : `${code}, ${message}`;
}
