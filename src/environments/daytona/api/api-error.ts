import {
  RolloutError,
  attribute,
  messageOf,
  type ErrorCode,
  type Phase,
} from '../../../core/errors.ts';

/** What the service answered instead of doing it, or that it did not answer. Never leaves the adapter: {@link apiFailure} maps it once. */
export class ApiError extends Error {
  override readonly name = 'ApiError';
  /** HTTP status; 0 when there was no answer. */
  readonly status: number;
  /** The service's own code, such as `SESSION_ENDED`; empty when it gives none. */
  readonly code: string;
  /** What a Retry-After asks for; null without one. */
  readonly retryAfterMs: number | null;
  /** The request may have been carried out. */
  readonly mayBeDone: boolean;

  constructor(
    message: string,
    about: {
      readonly status: number;
      readonly code?: string;
      readonly retryAfterMs?: number | null;
      readonly mayBeDone: boolean;
      readonly cause?: unknown;
    },
  ) {
    super(message, about.cause === undefined ? undefined : { cause: about.cause });
    this.status = about.status;
    this.code = about.code ?? '';
    this.retryAfterMs = about.retryAfterMs ?? null;
    this.mayBeDone = about.mayBeDone;
  }
}

export function isStatus(error: unknown, ...statuses: readonly number[]): error is ApiError {
  return error instanceof ApiError && statuses.includes(error.status);
}

const quota = /quota|limit exceeded|too many|capacity/i;

/** The service wants fewer requests, or no more sandboxes, for now. */
export function isThrottle({ status, message }: ApiError): boolean {
  return status === 429 || quota.test(message);
}

/** The one mapping from what the service says, or from not reaching it, to our codes. */
export function apiFailure(
  error: unknown,
  of: {
    /** The code when nothing more exact is known. */
    readonly code: ErrorCode;
    readonly phase: Phase;
    readonly what: string;
    /** Whether a sandbox that is not found or does not run is lost; false while it is being made. */
    readonly isRunning?: boolean;
  },
): RolloutError {
  const { phase, what } = of;
  if (!(error instanceof ApiError)) return attribute(error, of.code, phase, what);
  const message = `${what}: ${error.message}`;
  if (error.status === 401 || error.status === 403)
    return new RolloutError('ENVIRONMENT_UNAVAILABLE', message, {
      phase,
      cause: error,
      retryable: false,
      remedy:
        'Set DAYTONA_API_KEY to a key that may write sandboxes and snapshots, or DAYTONA_JWT_TOKEN with DAYTONA_ORGANIZATION_ID.',
    });
  if (of.isRunning === true && (error.status === 404 || error.status === 410 || error.status === 0))
    return new RolloutError('ENVIRONMENT_LOST', message, { phase, cause: error });
  if (isThrottle(error))
    return new RolloutError(of.code, message, {
      phase,
      cause: error,
      retryable: true,
      remedy: "Lower the number of concurrent trials, or raise the organisation's limits.",
    });
  if (error.status === 0)
    return new RolloutError('ENVIRONMENT_UNAVAILABLE', message, {
      phase,
      cause: error,
      retryable: true,
      remedy: 'Check DAYTONA_API_URL and that the service can be reached from here.',
    });
  return new RolloutError(of.code, message, {
    phase,
    cause: error,
    retryable: error.status >= 500 || error.status === 408 || error.status === 409,
  });
}

/** The words of an answer that is an error. */
export function errorWords(text: string): { readonly message: string; readonly code: string } {
  try {
    const body = JSON.parse(text) as Record<string, unknown>;
    const said = body['message'] ?? body['error'];
    const code = body['code'] ?? body['error_code'];
    return {
      message: typeof said === 'string' ? said : JSON.stringify(said ?? body).slice(0, 500),
      code: typeof code === 'string' ? code : '',
    };
  } catch {
    return { message: messageOf(text).slice(0, 500), code: '' };
  }
}
