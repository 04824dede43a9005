import type { EventsDocument, GapDocument } from '../wire/api/event.ts';
import type { Caller, RolloutService } from '../scheduler/rollout-service.ts';
import { eventDocumentOf } from './documents.ts';

/** One page of events. `after` null = from the oldest that is kept, whatever came before it. */
export async function readEvents(
  service: Pick<RolloutService, 'events'>,
  query: { readonly after: number | null; readonly limit: number; readonly rolloutId?: string },
  caller: Caller,
): Promise<EventsDocument> {
  const { after, ...rest } = query;
  const page = await service.events({ ...rest, after: after ?? 0 }, caller);
  const gap = after === null ? null : gapOf(after, page);
  const isLast = page.events.length < query.limit;
  const seen = page.events.at(-1)?.cursor ?? after ?? 0;
  return {
    events: page.events.map(eventDocumentOf),
    // Events that the caller may not see lie between; a page that is not full has passed all of them.
    next_after: isLast ? page.newest : seen,
    oldest: page.oldest,
    newest: page.newest,
    gap,
  };
}

function gapOf(
  after: number,
  { oldest, newest }: { readonly oldest: number; readonly newest: number },
): GapDocument | null {
  if (after > newest) return { reason: 'ahead', after, oldest, newest };
  if (after + 1 < oldest) return { reason: 'dropped', after, oldest, newest };
  return null;
}
