import { deadQuery, operations } from '../../wire/api/operations.ts';
import { callbackDocumentOf } from '../documents.ts';
import { Refusal } from '../refusal.ts';
import { readQuery } from '../request-body.ts';
import { addRoute, parameter, type Routing } from '../route.ts';

/** Callbacks that nobody took, and how to send one again. */
export function addCallbackRoutes(routing: Routing): void {
  const { service } = routing.parts;
  addRoute(routing, operations.deadCallbacks, async ({ request, caller }) => {
    const { after, limit } = readQuery(deadQuery, request);
    const letters = await service.deadLetters({ afterSeq: after, limit: limit + 1 }, caller);
    const page = letters.slice(0, limit);
    return {
      callbacks: page.map(callbackDocumentOf),
      next_after: letters.length > limit ? (page.at(-1)?.seq ?? null) : null,
    };
  });
  addRoute(routing, operations.replayCallback, async (call) => {
    const delivery = await service.replay(parameter(call, 'key'), call.caller);
    if (delivery === null) throw new Refusal(404, 'Not Found');
    return callbackDocumentOf(delivery);
  });
}
