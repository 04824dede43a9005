import { z } from 'zod';

/** What samples a rollout left that was to be trained on. The samples themselves: `sample-lines.ts`. */
export const samplesDocument = z.object({
  /** 0 = there are none; `not_trainable` says why. */
  count: z.int(),
  tokens: z.int(),
  trained_tokens: z.int(),
  /** Samples in which a trained call has no log-probabilities. */
  without_log_probs: z.int(),
  /** Samples by the label of their branch. */
  labels: z.record(z.string(), z.int()),
  /** Of the agent, whose ids are known. */
  calls: z.int(),
  /** In no sample, since the engine did not say their ids. */
  calls_without_ids: z.int(),
  /** The last of the hash chain; null = no calls. */
  link: z.string().nullable(),
  not_trainable: z
    .object({
      /** `cancelled`, `outcome`, `removed`, `no-calls`, `calls-missing`, `no-ids`, `nothing-sampled`, `not-made`. */
      reason: z.string(),
      message: z.string(),
    })
    .nullable(),
});

export const samplesQuery = z.object({
  /** `ndjson` as the archive has it, `miles` as one payload that clients of Miles take. */
  format: z.enum(['ndjson', 'miles']).default('ndjson'),
  /** Of the model, for the tensor of its routed experts in `miles`: their payload does not say. */
  layers: z.coerce.number().int().min(1).optional(),
});
