import { z } from 'zod';
import { instant } from './common.ts';

/** A callback under way or done. Its address names the rollout and may hold secrets: only the receiver's origin is shown. */
export const callbackDocument = z.object({
  key: z.string(),
  seq: z.int(),
  rollout_id: z.string(),
  channel: z.enum(['completion', 'grader']),
  /** Scheme, host and port. */
  receiver: z.string(),
  state: z.enum(['pending', 'delivered', 'dead', 'withdrawn']),
  attempts: z.int(),
  size_bytes: z.int(),
  created_at: instant,
  last_attempt_at: instant.nullable(),
  last_error: z.string().nullable(),
});
export type CallbackDocument = z.output<typeof callbackDocument>;

export const callbacksDocument = z.object({
  callbacks: z.array(callbackDocument),
  /** `after` of the next page; null = this is the last. */
  next_after: z.int().nullable(),
});
export type CallbacksDocument = z.output<typeof callbacksDocument>;
