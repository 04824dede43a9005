/** Failures of a translated call, freed of where they arose: what a dialect then says in its own way. No word of the upstream's address or key is in them. */
import { isRolloutError, type RolloutError } from '../core/errors.ts';
import { RefusedAnswer } from '../engines/shared/answer-error.ts';
import { RequestProblem, type DialectProblem } from './dialects/dialect.ts';
import { codeOf, noAnswer, type GatewayError } from './gateway-error.ts';

type Kind = DialectProblem['kind'];

const ofOwnRefusals: Readonly<Record<string, Kind | undefined>> = {
  ROUTE_KEY_INVALID: 'unauthorized',
  method_not_allowed: 'method',
  not_found: 'not-found',
  BODY_TOO_LARGE: 'too-large',
  too_many_calls: 'overloaded',
  BUDGET_EXHAUSTED: 'limit',
};

const ofEngines: Readonly<Record<string, Kind | undefined>> = {
  CONTEXT_OVERFLOW: 'context-overflow',
  ENGINE_OVERLOADED: 'overloaded',
  ENGINE_REQUEST_INVALID: 'invalid',
  CONVERSATION_INVALID: 'invalid',
};

/** A refusal of the gateway itself. */
export function ownProblem({ status, code, message, headers }: GatewayError): DialectProblem {
  return {
    ...{ kind: ofOwnRefusals[code] ?? 'upstream', status, message, field: null, tokens: null },
    retryAfter: headers?.['retry-after'] ?? null,
  };
}

/** What was thrown while a call was read, sent or answered. `hidden` = strings of the upstream that no client may see. */
export function callProblem(error: unknown, hidden: readonly string[]): DialectProblem {
  if (error instanceof RequestProblem) return error.problem;
  if (!isRolloutError(error)) return problem('upstream', 'the gateway failed: its log says why');
  const refused = error.cause instanceof RefusedAnswer ? error.cause : null;
  const message = hidden.reduce(
    (left, secret) => left.replaceAll(secret, '[REDACTED]'),
    refused === null ? ofTransport(error) : withoutOrigin(error),
  );
  return {
    ...problem(ofEngines[error.code] ?? 'upstream', message),
    ...{ status: refused?.status ?? null, retryAfter: refused?.retryAfter ?? null },
    field: error.code === 'CONVERSATION_INVALID' ? error.field : null,
    tokens: error.code === 'CONTEXT_OVERFLOW' ? tokensIn(error.message) : null,
  };
}

function problem(kind: Kind, message: string): DialectProblem {
  return { kind, status: null, message, field: null, retryAfter: null, tokens: null };
}

/** What the system says of a connection holds names and addresses: its code says enough. */
function ofTransport(error: RolloutError): string {
  const { code, cause } = error;
  if (code === 'CALLBACK_URL_REFUSED') return noAnswer(code);
  if (cause instanceof Error && code === 'ENGINE_UNAVAILABLE') return noAnswer(codeOf(cause));
  if (cause instanceof Error && code === 'ENGINE_STREAM_BROKEN')
    return `the answer broke off (${codeOf(cause)})`;
  return withoutOrigin(error);
}

/** Clients of engines end their messages with the address; an agent does not learn it. */
function withoutOrigin({ message }: RolloutError): string {
  return message.replace(/: https?:\/\/\S+(?: \(request [^)]*\))?$/, '');
}

/**
 * `maximum context length is 4096 tokens … requested 5000 tokens` (vLLM), `The input (5000 tokens) is longer than the model's context length (4096 tokens)`
 * (SGLang): the two numbers of tokens, the larger one is what was asked for. null = they are not said.
 */
function tokensIn(message: string): DialectProblem['tokens'] {
  const numbers = [...message.matchAll(/(\d[\d,]*) tokens|tokens:? (\d[\d,]*)/g)].map(
    ([, before, behind]) => Number((before ?? behind ?? '').replaceAll(',', '')),
  );
  const [asked, limit] = [Math.max(...numbers), Math.min(...numbers)];
  return numbers.length < 2 || asked === limit ? null : { asked, limit };
}
