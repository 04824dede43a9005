/**
 * Whether a rollout is to be trained on, and how its samples are made: `metadata.slipway_train` of a request, and the settings of a server. `true` and `false` are
 * short for the server's way and for no; a table says otherwise of a part of it.
 */
import { z } from 'zod';
import { RolloutError } from '../../core/errors.ts';

/** Which branches become samples. */
export const samplePickers = ['drop_retries', 'every_branch'] as const;

const trainTable = z
  .strictObject({
    train_summaries: z.boolean(),
    picker: z.enum(samplePickers),
    /** Of one sample; null = no limit. */
    max_tokens: z.int().min(1).nullable(),
    /** The engine is asked for what a trainer needs to route its tokens as it did. */
    routed_experts: z.boolean(),
    indexer_topk: z.boolean(),
  })
  .partial();

const trainSchema = z.union([z.boolean(), trainTable]);

export interface SampleRules {
  readonly trainsSummaries: boolean;
  /** One of the names, or a function of the operator's as path/to/file.ts:name. */
  readonly picker: string;
  readonly maxTokens: number | null;
  readonly routedExperts: boolean;
  readonly indexerTopk: boolean;
}

/** Of a server. */
export interface TrainSettings extends SampleRules {
  /** Where a request does not say. */
  readonly train: boolean;
}

export const trainsNothing: TrainSettings = {
  ...{ train: false, trainsSummaries: false, picker: 'drop_retries', maxTokens: null },
  ...{ routedExperts: false, indexerTopk: false },
};

/** The key of the metadata. */
export const trainKey = 'slipway_train';

type Metadata = Readonly<Record<string, unknown>> | null;

/** null = no samples are wanted. CONFIG_INVALID for what cannot be read: a row that misspells it must not go untrained. */
export function sampleRulesOf(metadata: Metadata, server: TrainSettings): SampleRules | null {
  const { train, ...rules } = server;
  const given = metadata?.[trainKey] ?? train;
  const read = trainSchema.safeParse(given);
  if (!read.success)
    throw new RolloutError('CONFIG_INVALID', z.prettifyError(read.error).replaceAll('\n', ' '), {
      ...{ phase: 'config', field: `metadata.${trainKey}` },
      remedy: `Send true, false, or an object of ${Object.keys(trainTable.shape).join(', ')}.`,
    });
  if (typeof read.data === 'boolean') return read.data ? rules : null;
  const { train_summaries, picker, max_tokens, routed_experts, indexer_topk } = read.data;
  return {
    trainsSummaries: train_summaries ?? rules.trainsSummaries,
    picker: picker ?? rules.picker,
    maxTokens: max_tokens === undefined ? rules.maxTokens : max_tokens,
    routedExperts: routed_experts ?? rules.routedExperts,
    indexerTopk: indexer_topk ?? rules.indexerTopk,
  };
}

/** Whether samples are wanted, of a request that may not be readable otherwise. */
export function wantsSamples(metadata: unknown, server: TrainSettings): boolean {
  const isTable = typeof metadata === 'object' && metadata !== null;
  const given: unknown = isTable && trainKey in metadata ? metadata[trainKey] : null;
  return given === null ? server.train : given !== false;
}
