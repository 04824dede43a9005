import { canonicalJson } from '../../core/canonical-json.ts';
import { operations } from '../../wire/api/operations.ts';
import { cancelRequestSchema, selectorOf, selectorRule } from '../../wire/rollout/cancel.ts';
import type { CancelReceipt } from '../../wire/rollout/receipt.ts';
import { rolloutIdProblem } from '../../wire/rollout/rollout-id.ts';
import { rolloutRequestSchema, type RolloutRequest } from '../../wire/rollout/rollout-request.ts';
import { statusDocument } from '../../wire/rollout/status.ts';
import { brokenRule } from '../../wire/rollout/validation.ts';
import { receiptDocumentOf } from '../documents.ts';
import type { AddressPolicy } from '../ports.ts';
import { invalid, Refusal, refuse } from '../refusal.ts';
import { readBody } from '../request-body.ts';
import { addRoute, parameter, type Call, type Routing } from '../route.ts';

/** The routes of the rollout protocol, and its cancellation with receipts. */
export function addRolloutRoutes(routing: Routing): void {
  const { service } = routing.parts;
  addRoute(routing, operations.submitRollout, async (call) => await submit(routing, call));
  addRoute(routing, operations.rolloutStatus, async (call) =>
    statusDocument(await service.status(parameter(call, 'id'), call.caller)),
  );
  addRoute(routing, operations.cancelRollouts, async (call) => {
    const receipts = await cancel(routing, call);
    const rows = [...receipts].map(([id, { disposition }]) => [id, disposition] as const);
    return { dispositions: Object.fromEntries(rows) };
  });
  addRoute(routing, operations.cancelWithReceipts, async (call) => ({
    receipts: [...(await cancel(routing, call)).values()].map(receiptDocumentOf),
  }));
}

const queueFull = 'rollout queue is full; retry later';

async function submit({ parts }: Routing, { request, reply, caller }: Call): Promise<unknown> {
  const body = readBody(rolloutRequestSchema, request);
  checkAddresses(body, parts.addresses);
  const answer = await parts.service.submit({
    ...{ request: body, caller },
    canonicalBody: canonicalJson(body),
  });
  switch (answer.kind) {
    case 'accepted':
      reply.status(202).header('x-slipway-rollout-id', headerText(answer.id));
      return {};
    case 'conflict':
      throw refuse('ROLLOUT_CONFLICT', 'a rollout of this id exists with another body');
    case 'tombstone':
      throw refuse('ROLLOUT_CONFLICT', 'a rollout of this id was cancelled before it came');
    case 'refused':
      throw new Refusal(429, answer.reason === 'full' ? queueFull : answer.detail, {
        'retry-after': wholeSeconds(answer.retryAfterS),
      });
    case 'stopping':
      throw refuse('SERVER_STOPPING', 'the server is shutting down', {
        'retry-after': wholeSeconds(answer.retryAfterS),
      });
  }
}

async function cancel(
  { parts }: Routing,
  { request, caller }: Call,
): Promise<ReadonlyMap<string, CancelReceipt>> {
  const selector = selectorOf(readBody(cancelRequestSchema, request));
  if (selector === null) throw new Refusal(422, selectorRule);
  if (selector.kind !== 'ids') return await parts.service.cancel(selector, caller);
  // An id that can never come needs no tombstone.
  const possible = selector.ids.filter((id) => rolloutIdProblem(id) === null);
  const receipts =
    possible.length === 0
      ? new Map<string, CancelReceipt>()
      : await parts.service.cancel({ kind: 'ids', ids: possible }, caller);
  const at = parts.clock.now();
  return new Map(
    selector.ids.map((id) => [id, receipts.get(id) ?? nothingToCancel(id, at)] as const),
  );
}

function nothingToCancel(rolloutId: string, at: Date): CancelReceipt {
  return {
    ...{ rolloutId, at, disposition: 'not_found', stage: null, problem: null, isComplete: true },
    ...{ modelCallsEnded: 0, processesKilled: 0, confirmedGone: [], durationMs: 0 },
  };
}

function checkAddresses(body: RolloutRequest, addresses: AddressPolicy): void {
  const fields = [
    'chat_completions_url',
    'completion_callback_url',
    'grader_callback_url',
  ] as const;
  const problems = fields.flatMap((field) => {
    const url = body[field];
    // No model and no grader are asked for by an empty address; a completion callback cannot be left out.
    if (url === null || (url === '' && field !== 'completion_callback_url')) return [];
    const problem = addresses.problem(url);
    return problem === null ? [] : [brokenRule(['body', field], `${field} ${problem}`, null)];
  });
  if (problems.length > 0) throw invalid(problems);
}

function wholeSeconds(seconds: number): string {
  return String(Math.max(1, Math.ceil(seconds)));
}

function headerText(id: string): string {
  return id.replaceAll(/[^\u0021-\u0024\u0026-\u007e]/gu, encodeURIComponent);
}
