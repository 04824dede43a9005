import type { ErrorCode } from '../../core/error-registry.ts';
import { RolloutError } from '../../core/errors.ts';

/** A request that a session refuses. The message is what clients of Miles know, word for word where they look at it. */
export function refusal(
  code: ErrorCode,
  message: string,
  options: { readonly field?: string; readonly cause?: unknown } = {},
): RolloutError {
  const remedy = remedies[code];
  return new RolloutError(code, message, {
    phase: 'model-call',
    ...(remedy !== undefined && { remedy }),
    ...(options.field !== undefined && { field: options.field }),
    ...(options.cause !== undefined && { cause: options.cause }),
  });
}

const remedies: Partial<Record<ErrorCode, string>> = {
  SESSION_NOT_FOUND: 'Make a session first, and ask the instance that made it.',
  SESSION_EXPIRED: 'Make a new session, or raise sessions.max_idle_sec.',
  SESSION_REQUEST_INVALID: 'Send a chat request as SGLang takes it.',
  SESSION_HISTORY_BROKEN:
    'Go on from what the session holds, or take sessions.version = v2, which keeps every branch.',
  SESSION_TURN_TRUNCATED: 'Begin a new conversation in the session, or raise the limit of tokens.',
  SESSION_FULL: 'Make a new session.',
  SESSION_MEMORY_FULL:
    'Delete sessions whose samples were taken, lower sessions.max_idle_sec, or raise sessions.max_bytes.',
  SESSION_TOKENS_BROKEN: 'Check the family of the model with slipway sessions verify.',
  SESSION_MATCHER_FAILED: 'Correct the matcher that sessions.matcher names.',
  SESSION_HOOK_FAILED: 'Correct what sessions.picker and sessions.postprocessor name.',
  ENGINE_RESPONSE_INVALID: 'Name an engine that speaks SGLang with token ids by sessions.url.',
};
