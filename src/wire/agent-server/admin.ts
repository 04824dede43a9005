/** What a trainer asks of the agent server beside trials: who has trials here, and their end. */
import { z } from 'zod';
import { laxBoolean } from '../harbor/lax.ts';

const optionalText = z.string().nullish().default(null);
const flag = (preset: boolean) => laxBoolean.meta({ type: 'boolean' }).default(preset);

/** The instance wins over the server. */
export const flushRequestSchema = z.object({
  session_server_id: optionalText,
  session_server_instance_id: optionalText,
});
export type FlushRequest = z.output<typeof flushRequestSchema>;

export const flushReplySchema = z.object({
  session_server_instance_id: z.string().optional(),
  session_server_id: z.string().nullable(),
  /** Trials that had not ended. */
  cancelled: z.int(),
});
export type FlushReply = z.output<typeof flushReplySchema>;

export const flushAllRequestSchema = z.object({
  cancel_tasks: flag(true),
  kill_containers: flag(true),
  prune: flag(false),
});
export type FlushAllRequest = z.output<typeof flushAllRequestSchema>;

/** Keys only of what was done. */
export const flushAllReplySchema = z.object({
  cancelled_tasks: z.int().optional(),
  killed_projects: z.array(z.string()).optional(),
  errors: z.array(z.object({ project: z.string(), error: z.string() })).optional(),
  prune: z.object({ containers: z.string(), volumes: z.string(), networks: z.string() }).optional(),
});
export type FlushAllReply = z.output<typeof flushAllReplySchema>;

/** By tracking key: the instance id, else the heartbeat's target. */
export const clientsReplySchema = z.record(
  z.string(),
  z.object({
    heartbeat_target: z.string(),
    session_server_instance_id: z.string().nullable(),
    active_tasks: z.int(),
  }),
);
export type ClientsReply = z.output<typeof clientsReplySchema>;
