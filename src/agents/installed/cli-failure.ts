/**
 * What a program that ended with an error says of it. Of all that matches the last words count: what came before was overcome. All are still
 * AGENT_EXIT_NONZERO, so that the work is verified.
 */
import { RolloutError } from '../../core/errors.ts';

const classes: readonly (readonly [type: string, pattern: RegExp])[] = [
  ['ApiRateLimitError', /rate limit|too many requests|litellm\.ratelimiterror/gi],
  [
    'ApiUsageLimitError',
    /specified api usage limits|hit your usage limit|unpaid invoice|quota exceeded|insufficient_quota/gi,
  ],
  [
    'ApiInternalServerError',
    /api error: 500[^\n]{0,40}internal server error|retriable internal error|litellm\.internalservererror/gi,
  ],
  [
    'ApiOverloadedError',
    /api error: overloaded|serviceunavailableerror|model is at capacity|experiencing high demand/gi,
  ],
  [
    'ApiConnectionClosedError',
    /api error: connection closed mid-response|stream closed before (?:completion|response\.completed)/gi,
  ],
  [
    'ApiResponseStalledError',
    /api error: response stalled mid-stream|idle timeout waiting for sse/gi,
  ],
  [
    'OutputTokenExceededError',
    /response exceeded[^\n]{0,40}output token maximum|reason: max_output_tokens|hit\sa\stoken\slimit![\s\S]{0,200}output tokens: ~[1-9]/gi,
  ],
  [
    'ContextWindowExceededError',
    /input token count exceeds the maximum|maximum context length is|prompt is too long|ran out of room in the model's context window|hit\sa\stoken\slimit![\s\S]{0,200}output tokens: ~0/gi,
  ],
  [
    'AgentAuthenticationError',
    /not logged in|authentication_failed|401 unauthorized|litellm\.authenticationerror/gi,
  ],
  ['ModelNotFoundError', /cannot use this model|model_not_found/gi],
  [
    'ApiProviderResourceNotFoundError',
    /provider[^\n]{0,40}trouble finding the requested resource/gi,
  ],
  [
    'AgentSafetyRefusalError',
    /(?:cyber|safety|usage policy|content[ _]filter)[^\n]{0,40}(?:violat|block|refus|declin)/gi,
  ],
  [
    'NetworkConnectionError',
    /ssl_connect|ssl_error_syscall|could not resolve host|connection (?:refused|timed out)|request timed out|curl: \(\d+\)/gi,
  ],
];
const anyApiError = /api error/gi;

/** Harbor's name of the failure; of two that end in the same place the more particular one. */
export function failureType(output: string): string {
  let found = { type: 'NonZeroAgentExitCodeError', end: -1 };
  for (const [type, pattern] of classes)
    for (const match of output.matchAll(pattern)) {
      const end = match.index + match[0].length;
      if (end > found.end) found = { type, end };
    }
  if (found.end < 0 && anyApiError.test(output)) return unknownApiError();
  return found.type;
}

function unknownApiError(): string {
  anyApiError.lastIndex = 0;
  return 'UnknownApiError';
}

const shownFirst = 250;
const shownLast = 750;

export function cliFailure(
  { name, exitCode }: { readonly name: string; readonly exitCode: number },
  output: string,
): RolloutError {
  const said = output.trim();
  const isLong = said.length > shownFirst + shownLast;
  const shown = isLong ? `${said.slice(0, shownFirst)}…${said.slice(-shownLast)}` : said;
  // Some end well and tell of a failure.
  const what = exitCode === 0 ? 'failed' : `ended with ${exitCode}`;
  return new RolloutError(
    'AGENT_EXIT_NONZERO',
    `agent ${name}: its program ${what}${shown === '' ? '' : `: ${shown}`}`,
    { phase: 'agent', exceptionType: failureType(output) },
  );
}
