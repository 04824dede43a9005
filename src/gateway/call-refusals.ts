/** Calls that are refused before anything of them is looked at: by whom they are sent, how, and what their rollout has used up. */
import { randomUUID } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { errorRegistry } from '../core/error-registry.ts';
import type { CallKind } from './call-budget.ts';
import type { Dialect } from './dialects/dialect.ts';
import { bodyTooLarge, sendError, sendProblem, type GatewayError } from './gateway-error.ts';
import type { LiveRoute } from './live-route.ts';
import { ownProblem } from './problems.ts';
import type { GatewayCall, GatewayTarget } from './relay-request.ts';

export const unauthorized = {
  status: errorRegistry.ROUTE_KEY_INVALID.httpStatus,
  code: 'ROUTE_KEY_INVALID',
} as const;

export const deadKey: GatewayError = {
  ...unauthorized,
  message: 'the key is of no rollout that is running',
};

export interface CameIn {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  readonly bodyLimitBytes: number;
}

/** What is left of the request is read and forgotten, up to the limit: an answer is lost where a connection closes on unread bytes. `dialect` null = the upstream's own. */
export function refuse(
  error: GatewayError,
  { request, response, bodyLimitBytes }: CameIn,
  dialect: Dialect | null,
): void {
  if (dialect === null) sendError(response, error);
  else sendProblem(response, dialect.problem(ownProblem(error), randomUUID()));
  let left = bodyLimitBytes;
  request.on('data', (chunk: Buffer) => {
    left -= chunk.length;
    if (left < 0) request.destroy();
  });
}

/** null = nothing speaks against it; budgets are another matter. */
export function refusalOfForm(
  call: GatewayCall,
  { request, bodyLimitBytes }: Omit<CameIn, 'response'>,
): GatewayError | null {
  if (request.method !== call.method)
    return {
      ...{ status: 405, code: 'method_not_allowed', message: `${call.method} is expected` },
      headers: { allow: call.method },
    };
  if (Number(request.headers['content-length'] ?? 0) > bodyLimitBytes)
    return bodyTooLarge(bodyLimitBytes);
  if (call.target.kind === 'missing')
    return { status: 404, code: 'not_found', message: `${request.url ?? ''} is not offered` };
  return null;
}

/** `onSpent` is told of a budget when it refuses for the first time. */
export function refusalByBudget(
  kind: CallKind,
  route: LiveRoute,
  { now, onSpent }: { readonly now: Date; readonly onSpent: () => void },
): GatewayError | null {
  const refusal = route.budget.refusal(kind, { running: route.calls.size, now });
  const { spent } = route.budget;
  if (refusal !== null && spent?.refused === 1 && spent.at === now) onSpent();
  return refusal;
}

export function kindOf(target: GatewayTarget): CallKind {
  if (target.kind === 'count-tokens') return 'counting';
  const isSampling =
    target.kind === 'translate' || (target.kind === 'relay' && target.suffix !== '/models');
  return isSampling ? 'sampling' : 'other';
}
