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

/** The event without secrets in what others said. The rest is ours, and is read again: a secret may be a number or a word of it. */
export function maskedEvent(event: EvalEvent, mask: (text: string) => string): EvalEvent {
  const masked = (text: string | null): string | null => (text === null ? null : mask(text));
  if (event.type === 'item:returned') return { ...event, reason: mask(event.reason) };
  if (event.type === 'item:ended')
    return {
      ...event,
      error_type: masked(event.error_type),
      err_message: masked(event.err_message),
    };
  if (event.type !== 'item:kept' || event.verdict === null) return event;
  const verdict = Object.entries(event.verdict).map(([name, value]) => [mask(name), value]);
  return { ...event, verdict: Object.fromEntries(verdict) as Record<string, number> };
}
