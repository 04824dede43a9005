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
  const last = page.events.at(-1)?.cursor ?? 0;
  // Events may have come between the look at the newest and the look at the page.
  const newest = Math.max(page.newest, last);
  return {
    events: page.events.map(eventDocumentOf),
    // A page that is not full has passed everything, also what the caller may not see.
    next_after: page.events.length < query.limit ? newest : last,
    ...{ oldest: page.oldest, newest },
    gap: after === null ? null : gapOf(after, { oldest: page.oldest, newest }),
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
