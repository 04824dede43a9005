import { z } from 'zod';
import { instant } from './common.ts';

export const capacityDocument = z.object({
  max_concurrent: z.int(),
  max_queue_depth: z.int(),
  in_flight: z.int(),
  queue_depth: z.int(),
  available: z.int(),
  accepting: z.boolean(),
});

export const admissionDocument = z.object({
  capacity: capacityDocument,
  /** How many may run now: `max_concurrent`, or less while the engine's KV cache is full. */
  running_cap: z.int(),
  running: z.int(),
  queued: z.int(),
  /** Ended, with callbacks or archive still under way. */
  delivering: z.int(),
  paused: z.object({ reason: z.string(), since: instant, retry_at: instant }).nullable(),
  is_stopping: z.boolean(),
  /** A tenant sees itself only. */
  tenants: z.array(
    z.object({ name: z.string(), weight: z.number(), running: z.int(), queued: z.int() }),
  ),
});
export type AdmissionDocument = z.output<typeof admissionDocument>;
