import { listQuery, operations } from '../../wire/api/operations.ts';
import type { RolloutsDocument } from '../../wire/api/rollout.ts';
import type { RolloutQuery } from '../../store/rollout-store.ts';
import { admissionDocumentOf, rolloutDetailOf, rolloutDocumentOf } from '../documents.ts';
import { Refusal } from '../refusal.ts';
import { readQuery } from '../request-body.ts';
import { addRoute, parameter, requireOperator, type Call, type Routing } from '../route.ts';

/** Lists and single rollouts, admission, metrics. */
export function addRolloutsRoutes(routing: Routing): void {
  const { service, metrics } = routing.parts;
  addRoute(
    routing,
    operations.listRollouts,
    async ({ request, caller }): Promise<RolloutsDocument> => {
      const { state, limit, ...rest } = readQuery(listQuery, request);
      // One more than asked for says whether there is another page.
      const query: RolloutQuery = { ...given(rest), ...given({ states: state }), limit: limit + 1 };
      const views = await service.list(query, caller);
      const page = views.slice(0, limit);
      return {
        rollouts: page.map(rolloutDocumentOf),
        next_after: views.length > limit ? (page.at(-1)?.rollout.id ?? null) : null,
      };
    },
  );
  addRoute(routing, operations.inspectRollout, async (call) =>
    rolloutDetailOf(await viewOf(routing, call)),
  );
  addRoute(routing, operations.admission, ({ caller }) =>
    admissionDocumentOf(service.admission(), caller),
  );
  addRoute(routing, operations.metrics, async ({ reply, caller }) => {
    requireOperator(caller);
    reply.type(metrics.contentType);
    return await metrics.text();
  });
}

/** The rollout that the path names, or 404: also for one of another tenant. */
export async function viewOf({ parts }: Routing, call: Call) {
  const view = await parts.service.inspect(parameter(call, 'id'), call.caller);
  if (view === null) throw new Refusal(404, 'Not Found');
  return view;
}

/** Without the fields that have no value. */
function given<T extends object>(fields: T): { [K in keyof T]?: Exclude<T[K], undefined> } {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined)) as {
    [K in keyof T]?: Exclude<T[K], undefined>;
  };
}
