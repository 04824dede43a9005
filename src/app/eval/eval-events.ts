/** Lines of `events.jsonl`: what happened to the runs of rows, in order. What an evaluation knows follows from them alone. */
import { z } from 'zod';

const item = {
  row_index: z.int().min(0),
  run_index: z.int().min(0),
  rollout_id: z.string(),
  at: z.string(),
};

export const endedEvent = z.object({
  type: z.literal('item:ended'),
  ...item,
  status: z.enum(['success', 'failed', 'skipped']),
  reward: z.number().nullable(),
  /** null = it did not fail. */
  error_type: z.string().nullable(),
  err_message: z.string().nullable(),
  /** Code of the error registry, where the server names one. */
  cause: z.string().nullable(),
  duration_ms: z.number(),
});
export type EndedEvent = z.output<typeof endedEvent>;

/** After the end: what was fetched from the archive of the server. */
export const keptEvent = z.object({
  type: z.literal('item:kept'),
  ...item,
  trajectory_filename: z.string().nullable(),
  tokens: z.int().nullable(),
  cause: z.string().nullable(),
  /** What a verifier decided although the rollout failed. */
  verdict: z.record(z.string(), z.number()).nullable(),
});
export type KeptEvent = z.output<typeof keptEvent>;

export const evalEvent = z.discriminatedUnion('type', [
  z.object({ type: z.literal('run:started'), at: z.string(), pid: z.int() }),
  z.object({ type: z.literal('item:started'), ...item }),
  endedEvent,
  keptEvent,
  /** It is to be run again: an outage, a cancellation, a wish. */
  z.object({ type: z.literal('item:returned'), ...item, reason: z.string() }),
]);
export type EvalEvent = z.output<typeof evalEvent>;
