import { z } from 'zod';
import { instant } from './common.ts';

/** What cancelling a rollout did. */
export const receiptDocument = z.object({
  rollout_id: z.string(),
  disposition: z.enum(['cancelled_queued', 'cancelled_running', 'not_found']),
  /** In which the cancellation met it; null = it had not been submitted, or had ended. */
  stage: z.string().nullable(),
  model_calls_ended: z.int(),
  processes_killed: z.int(),
  /** Kinds of things that were looked for and found absent. */
  confirmed_gone: z.array(z.string()),
  is_complete: z.boolean(),
  problem: z.string().nullable(),
  duration_ms: z.number(),
  at: instant,
});
export type ReceiptDocument = z.output<typeof receiptDocument>;

export const receiptsDocument = z.object({ receipts: z.array(receiptDocument) });
export type ReceiptsDocument = z.output<typeof receiptsDocument>;
