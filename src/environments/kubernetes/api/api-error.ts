import { attribute, RolloutError, type ErrorCode, type Phase } from '../../../core/errors.ts';

/** What the API server answered instead of doing it. Never leaves the adapter: {@link apiFailure} maps it once. */
export class ApiError extends Error {
  override readonly name = 'ApiError';
  readonly status: number;
  /** As in a Status document: `AlreadyExists`, `NotFound`, `Forbidden`. Empty when there was none. */
  readonly reason: string;
  readonly retryAfterMs: number | null;

  constructor(
    status: number,
    message: string,
    {
      reason = '',
      retryAfterMs = null,
    }: { readonly reason?: string; readonly retryAfterMs?: number | null } = {},
  ) {
    super(message);
    this.status = status;
    this.reason = reason;
    this.retryAfterMs = retryAfterMs;
  }

  /** A ResourceQuota of the namespace is used up: trying again later may help. */
  get isOverQuota(): boolean {
    return this.status === 403 && /exceeded quota/i.test(this.message);
  }
}

const severedCodes = new Set([
  'ECONNRESET',
  'EPIPE',
  'ETIMEDOUT',
  'UND_ERR_SOCKET',
  'UND_ERR_HEADERS_TIMEOUT',
  'UND_ERR_BODY_TIMEOUT',
  'UND_ERR_CONNECT_TIMEOUT',
  'ECONNREFUSED',
  'EAI_AGAIN',
  'EHOSTUNREACH',
  'ENETUNREACH',
]);

/** Whether a connection was refused or broke, so that nothing is known of what it asked for. */
export function isConnectionError(error: unknown): boolean {
  return severedCodes.has((error as NodeJS.ErrnoException | null)?.code ?? '');
}

export interface FailureOf {
  /** The code when nothing more exact is known. */
  readonly code: ErrorCode;
  readonly phase: Phase;
  readonly what: string;
  /** Whether a missing pod means that the sandbox is lost; false while it is being made. */
  readonly isRunning?: boolean;
}

/** What a node says of a container that has ended. */
const goneWords = /container not found|container is not (created or )?running|pod does not exist/i;

/** The one mapping from what the API server says, or from not reaching it, to our codes. */
export function apiFailure(error: unknown, of: FailureOf): RolloutError {
  if (error instanceof RolloutError) return error;
  const { phase, what } = of;
  if (!(error instanceof ApiError)) {
    if (!isConnectionError(error)) return attribute(error, of.code, phase, what);
    return new RolloutError('ENVIRONMENT_UNAVAILABLE', `${what}: the API server does not answer`, {
      phase,
      cause: error,
      retryable: true,
      remedy: 'Check the cluster address of the kubeconfig, and that this machine reaches it.',
    });
  }
  const message = `${what}: ${error.message}`;
  const isGone = error.status === 404 || goneWords.test(error.message);
  if (isGone && of.isRunning === true)
    return new RolloutError('ENVIRONMENT_LOST', message, { phase, cause: error });
  if (error.isOverQuota || error.status === 429)
    return new RolloutError('ENVIRONMENT_THROTTLED', message, {
      phase,
      cause: error,
      ...(error.retryAfterMs !== null && { retryAfterMs: error.retryAfterMs }),
      remedy: 'Run fewer trials at once, or raise the ResourceQuota of the namespace.',
    });
  if (error.status === 401 || error.status === 403)
    return new RolloutError('ENVIRONMENT_UNAVAILABLE', message, {
      phase,
      cause: error,
      retryable: false,
      remedy: 'Give this user the Role of docs/kubernetes.md in the namespace.',
    });
  if (error.status === 400 || error.status === 422)
    return new RolloutError(of.code, message, {
      phase,
      cause: error,
      retryable: false,
      remedy:
        'Correct what the API server refuses: a limit, a label, or an option of the environment.',
    });
  return new RolloutError(of.code, message, { phase, cause: error });
}
