import { z } from 'zod';
import { callbackDocument } from './callback.ts';
import { instant, rolloutState } from './common.ts';
import { receiptDocument } from './receipt.ts';
import { samplesDocument } from './samples.ts';

export const waitingOnDocument = z.object({
  kind: z.string(),
  /** Who has to act. */
  owner: z.string(),
  detail: z.string().nullable(),
  since: instant,
  /** When the wait ends by itself; null = no limit of its own. */
  deadline: instant.nullable(),
});

export const outcomeDocument = z.object({
  status: z.enum(['success', 'failure', 'cancelled']),
  reward: z.number().nullable(),
  err_message: z.string().nullable(),
  err_category: z.string().nullable(),
  /** The phase in which it ended or first failed; `done` = none failed. */
  stage: z.string(),
  /** Code of the first failure; null = none. */
  cause: z.string().nullable(),
  trainable: z.boolean(),
  retryable: z.boolean(),
  verdict: z.object({ rewards: z.record(z.string(), z.number()) }).nullable(),
  /** null = nobody wants samples of it. */
  samples: samplesDocument.nullable(),
});

/** What the model calls of a live rollout do. */
export const callsDocument = z.object({
  running: z.int(),
  done: z.int(),
  waiting: z
    .object({ since: instant, bytes: z.int(), last_byte_at: instant.nullable() })
    .nullable(),
  last_call_ended_at: instant.nullable(),
  refusal: z
    .object({
      status: z.int().nullable(),
      message: z.string(),
      at: instant,
      count: z.int(),
    })
    .nullable(),
  /** The budget that is used up, once a call was refused for it. */
  spent: z
    .object({
      limit: z.enum(['max_requests', 'max_turns', 'max_sampled_tokens', 'max_call_tokens']),
      max: z.int(),
      used: z.int(),
      refused: z.int(),
      at: instant,
    })
    .nullable(),
  /** null = calls are not captured. */
  capture: z
    .object({
      calls: z.int(),
      /** Why nothing more is kept. */
      problem: z.object({ code: z.string(), message: z.string() }).nullable(),
    })
    .nullable(),
});

export const rolloutDocument = z.object({
  id: z.string(),
  tenant: z.string(),
  state: rolloutState,
  /** For people: `running agent`; null once ended. */
  stage: z.string().nullable(),
  waiting_on: waitingOnDocument.nullable(),
  last_progress_at: instant.nullable(),
  /** Runs begun so far. */
  attempt: z.int(),
  has_agent_begun: z.boolean(),
  accepted_at: instant,
  started_at: instant.nullable(),
  /** When the completion callback's body was fixed. */
  completed_at: instant.nullable(),
  ended_at: instant.nullable(),
  outcome: outcomeDocument.nullable(),
  /** null = no live model route. */
  calls: callsDocument.nullable(),
  /** Cancelled before it came, or its request was dropped by retention. */
  is_tombstone: z.boolean(),
});
export type RolloutDocument = z.output<typeof rolloutDocument>;

export const rolloutDetailDocument = rolloutDocument.extend({
  callbacks: z.array(callbackDocument),
  receipts: z.array(receiptDocument),
});
export type RolloutDetailDocument = z.output<typeof rolloutDetailDocument>;

export const rolloutsDocument = z.object({
  /** Newest first. */
  rollouts: z.array(rolloutDocument),
  /** `after` of the next page; null = this is the last. */
  next_after: z.string().nullable(),
});
export type RolloutsDocument = z.output<typeof rolloutsDocument>;
