import { attribute, RolloutError, type ErrorCode, type Phase } from '../../core/errors.ts';
import type { BridgeFailure } from './bridge/bridge-messages.ts';

export type SkyFailureKind = BridgeFailure['kind'] | 'bridge-lost';

/** A call of the sandbox SDK that failed, before it is attributed. */
export class SkyError extends Error {
  override readonly name = 'SkyError';
  readonly kind: SkyFailureKind;
  /** What the service asks to wait; null where it does not say. */
  readonly retryAfterMs: number | null;

  constructor(kind: SkyFailureKind, message: string, retryAfterMs: number | null = null) {
    super(message);
    this.kind = kind;
    this.retryAfterMs = retryAfterMs;
  }
}

export function isSkyError(value: unknown, ...kinds: readonly SkyFailureKind[]): value is SkyError {
  return value instanceof SkyError && (kinds.length === 0 || kinds.includes(value.kind));
}

/** Whether the same call may work a moment later. Of these, all but `rate-limited` may also have worked already. */
export function isPassing(error: unknown): error is SkyError {
  return isSkyError(error, 'unavailable', 'bridge-lost', 'rate-limited');
}

const remedies: Partial<Record<SkyFailureKind, string>> = {
  auth: 'Log in with "sky api login -e ENDPOINT", or set SKYPILOT_API_SERVER_ENDPOINT to an address that carries a token.',
  'rate-limited':
    'Run fewer trials at once, or ask for a higher quota; the cluster may be out of room.',
  unavailable: 'Check that the SkyPilot API server answers: "sky api info".',
  unsupported: 'Install the release of the sandbox SDK that belongs to your SkyPilot API server.',
};

/** The typed error for a failure of the SDK; others are attributed as they are. */
export function skyFailure(
  error: unknown,
  at: { readonly code: ErrorCode; readonly phase: Phase; readonly what: string },
): RolloutError {
  if (!(error instanceof SkyError)) return attribute(error, at.code, at.phase, at.what);
  const isGone = error.kind === 'not-found' && at.code !== 'ENVIRONMENT_DESTROY_FAILED';
  const isService = ['auth', 'rate-limited', 'unavailable', 'unsupported', 'bridge-lost'];
  const isStarting = at.code === 'ENVIRONMENT_START_FAILED' && isService.includes(error.kind);
  const inStart =
    error.kind === 'rate-limited' ? 'ENVIRONMENT_THROTTLED' : 'ENVIRONMENT_UNAVAILABLE';
  const code = isGone ? 'ENVIRONMENT_LOST' : isStarting ? inStart : at.code;
  const remedy = remedies[error.kind];
  return new RolloutError(code, `${at.what}: ${error.message}`, {
    phase: at.phase,
    cause: error,
    retryable: isPassing(error),
    ...(remedy === undefined ? {} : { remedy }),
    ...(error.retryAfterMs === null ? {} : { retryAfterMs: error.retryAfterMs }),
  });
}
