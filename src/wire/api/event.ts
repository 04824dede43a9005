import { z } from 'zod';
import { instant, jsonObject } from './common.ts';

export const eventDocument = z.object({
  /** Grows by one per event of a data folder; the resume point of the stream. */
  cursor: z.int(),
  rollout_id: z.string(),
  tenant: z.string(),
  /** `rollout:queued`, `rollout:ended`, `callback:delivered`, … */
  type: z.string(),
  at: instant,
  payload: jsonObject,
});
export type EventDocument = z.output<typeof eventDocument>;

/** Events behind the cursor that are not kept (`dropped`), or a cursor that this data folder has not reached (`ahead`). */
export const gapDocument = z.object({
  reason: z.enum(['dropped', 'ahead']),
  after: z.int(),
  oldest: z.int(),
  newest: z.int(),
});
export type GapDocument = z.output<typeof gapDocument>;

export const eventsDocument = z.object({
  events: z.array(eventDocument),
  /** `after` of the next page; it also moves past events that the caller may not see. */
  next_after: z.int(),
  oldest: z.int(),
  newest: z.int(),
  /** null = nothing between `after` and the first event is lost. */
  gap: gapDocument.nullable(),
});
export type EventsDocument = z.output<typeof eventsDocument>;
