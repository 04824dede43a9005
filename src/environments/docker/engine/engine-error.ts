import { RolloutError, attribute, type ErrorCode, type Phase } from '../../../core/errors.ts';

/** What the engine answered instead of doing it. Never leaves the adapter: {@link engineFailure} maps it once. */
export class EngineError extends Error {
  override readonly name = 'EngineError';
  readonly status: number;

  constructor(status: number, message: string) {
    super(message);
    this.status = status;
  }
}

const connectionCodes = new Set(['ECONNREFUSED', 'ENOENT', 'EACCES', 'EPERM', 'ENOTFOUND']);
const severedCodes = new Set(['ECONNRESET', 'EPIPE', 'ETIMEDOUT']);

export interface FailureOf {
  /** The code when nothing more exact is known. */
  readonly code: ErrorCode;
  readonly phase: Phase;
  readonly what: string;
  /** Whether a missing or stopped container means that the sandbox is lost; false while it is being made. */
  readonly isRunning?: boolean;
}

/** The one mapping from what the engine says, or from not reaching it, to our codes. */
export function engineFailure(error: unknown, of: FailureOf): RolloutError {
  if (error instanceof RolloutError) return error;
  const { phase, what } = of;
  if (error instanceof EngineError) {
    const message = `${what}: ${error.message}`;
    if (/no space left on device|disk quota exceeded/i.test(error.message))
      return new RolloutError('DISK_FULL', message, {
        phase,
        cause: error,
        remedy: 'Free disk space on the Docker host ("docker system df" shows where it went).',
      });
    const isGone =
      (error.status === 404 && /no such (container|exec)/i.test(error.message)) ||
      (error.status === 409 && /is not running|is paused|is restarting/i.test(error.message)) ||
      /no longer running|container .* is not running|cannot exec in a stopped/i.test(error.message);
    if (isGone && of.isRunning === true)
      return new RolloutError('ENVIRONMENT_LOST', message, { phase, cause: error });
    return new RolloutError(of.code, message, { phase, cause: error });
  }
  const code = (error as NodeJS.ErrnoException | null)?.code ?? '';
  if (connectionCodes.has(code))
    return new RolloutError('ENVIRONMENT_UNAVAILABLE', `${what}: the engine cannot be reached`, {
      phase,
      cause: error,
      remedy: reachRemedy(code),
    });
  if (severedCodes.has(code))
    return new RolloutError('ENVIRONMENT_UNAVAILABLE', `${what}: the engine hung up`, {
      phase,
      cause: error,
      retryable: true,
    });
  return attribute(error, of.code, phase, what);
}

function reachRemedy(code: string): string {
  return code === 'EACCES' || code === 'EPERM'
    ? 'Add this user to the group "docker" and log in again, or run as root, or use --env local.'
    : 'Install Docker and start it ("dockerd", or the service "docker"), or set DOCKER_HOST, or use --env local.';
}
