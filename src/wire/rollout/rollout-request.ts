/**
 * `POST /rollout` as controllers of the Osmosis rollout protocol send it: three required fields, unknown keys ignored, identity in the URLs. Refusals
 * have the shape that FastAPI gives them (`docs/compatibility.md`).
 */
import { z } from 'zod';
import { laxNumber } from '../harbor/lax.ts';
import { rolloutIdSchema } from './rollout-id.ts';

const jsonObject = z.record(z.string(), z.unknown());

/** Seconds; zero and less mean "already over". Numeric strings are accepted, NaN and infinities are not. */
const seconds = laxNumber.meta({ type: 'number' });

export const rolloutRequestSchema = z.object({
  initial_messages: z.array(jsonObject),
  /** What `/chat/completions` is appended to; opaque. */
  chat_completions_url: z.string(),
  /** Opaque; the receiver knows the rollout by this URL. */
  completion_callback_url: z.string(),
  label: z.string().nullish().default(null),
  metadata: jsonObject.nullish().default(null),
  rollout_id: rolloutIdSchema.nullish().default(null),
  /** Bearer of the callbacks; an empty one is none. */
  controller_api_key: z.string().nullish().default(null),
  /** Bearer toward `chat_completions_url`; null = `controller_api_key`. */
  llm_api_key: z.string().min(1).nullish().default(null),
  grader_callback_url: z.string().nullish().default(null),
  agent_timeout_sec: seconds.nullish().default(null),
  grader_timeout_sec: seconds.nullish().default(null),
  /** Identity of the run; archived, never interpreted. */
  extra_fields: jsonObject.nullish().default(null),
});

export type RolloutRequest = z.output<typeof rolloutRequestSchema>;

/** Fields of a request whose values no answer repeats. */
export const secretRequestFields = ['controller_api_key', 'llm_api_key'] as const;
