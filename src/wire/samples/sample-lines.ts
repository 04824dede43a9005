/**
 * Samples of one rollout as NDJSON: a head with all of its calls and their hash chain, one line per sample, and an end. From these lines alone the chain can be
 * computed again: what of a call's output is not among a sample's tokens stands beside it.
 */
import { z } from 'zod';

const id = z.int().min(0).max(0x7fff_ffff);
const hex = z.string().regex(/^[0-9a-f]{64}$/);
const position = z.int().min(0);
const logprob = z.number();

/** What the engine said of how it computed the tokens of a call, as it came. It is for all tokens of prompt and output but the last. */
export const callReplaySchema = z
  .strictObject({
    routed_experts: z.unknown(),
    indexer_topk: z.unknown(),
    indexer_topk_num_layers: z.unknown(),
  })
  .partial();

/** A call, in the order in which they ended. */
export const sampleCallSchema = z.strictObject({
  call: z.int(),
  label: z.string(),
  reason: z.string().nullable(),
  from: z.int().nullable(),
  parent: z.int().nullable(),
  purpose: z.string(),
  status: z.enum(['completed', 'truncated', 'aborted']),
  weight_version: z.string().nullable(),
  prompt_tokens: position,
  output_tokens: position,
  /** Of the prompt, that the engine had in its cache; absent = it did not say. */
  cached_tokens: position.optional(),
  digest: hex,
});

export const samplesHeadSchema = z.strictObject({
  slipway_samples: z.literal(1),
  rollout_id: z.string().nullable(),
  calls: z.array(sampleCallSchema),
  /** Calls of which ids are not known: they can be in no sample. */
  calls_without_ids: position,
  link: hex.nullable(),
});

/** A call inside of a sample: its new prompt begins at `begin`, its output at `output`; positions in the sample's tokens. */
export const sampleSpanSchema = z.strictObject({
  call: z.int(),
  begin: position,
  output: position,
  end: position,
  trained: z.boolean(),
  weight_version: z.string().nullable(),
  has_log_probs: z.boolean(),
  /** Of the output, what the next turn's template let go, or what was cut. */
  missing: z.strictObject({ ids: z.array(id), log_probs: z.array(logprob).nullable() }).optional(),
  /** Only where the sample as a whole has none. */
  log_probs: z.array(logprob).optional(),
});

export const sampleLineSchema = z.strictObject({
  sample: position,
  label: z.string(),
  reason: z.string().nullable(),
  status: z.enum(['completed', 'truncated', 'aborted']),
  is_cut: z.boolean(),
  reward: z.number().nullable(),
  weight: z.number(),
  prompt_length: position,
  tokens: z.array(id),
  /** Of all behind the prompt. */
  loss_mask: z.array(z.union([z.literal(0), z.literal(1)])),
  /** Of all behind the prompt, 0 where nothing was sampled; null = a trained call has none. */
  log_probs: z.array(z.number()).nullable(),
  calls: z.array(sampleSpanSchema),
  /** Of its last call, which is about all of its tokens; where the sample is cut, about more. Absent = the engine said nothing. */
  replay: callReplaySchema.optional(),
});

export const samplesEndSchema = z.strictObject({
  slipway_samples_end: z.literal(1),
  samples: position,
  /** Of all bytes before this line. */
  sha256: hex,
});

export type CallReplay = z.infer<typeof callReplaySchema>;
export type SampleCall = z.infer<typeof sampleCallSchema>;
export type SamplesHead = z.infer<typeof samplesHeadSchema>;
export type SampleSpanLine = z.infer<typeof sampleSpanSchema>;
export type SampleLine = z.infer<typeof sampleLineSchema>;
export type SamplesEnd = z.infer<typeof samplesEndSchema>;
