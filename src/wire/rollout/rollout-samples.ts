/** What samples a rollout left that was to be trained on, and why there are none. */
import type { z } from 'zod';
import type { samplesDocument } from '../api/samples.ts';
import type { RolloutOutcome } from './rollout-outcome.ts';

/** In the archive of a rollout. */
export const samplesFile = 'samples.ndjson';

export const untrainableReasons = [
  'cancelled', // the rollout was cancelled
  'outcome', // its outcome is not trainable: the message names the cause
  'removed', // its workflow or grader removed the sample
  'no-calls', // the agent asked its model nothing
  'calls-missing', // not all of its calls were kept
  'no-ids', // the engine said no ids
  'nothing-sampled', // nothing is left that the model said in a turn of the agent
  'not-made', // the samples could not be put together, or not be kept
] as const;

export type UntrainableReason = (typeof untrainableReasons)[number];

export interface RolloutSamples {
  /** In `samples.ndjson` of the archive; 0 = there is no such file. */
  readonly count: number;
  readonly tokens: number;
  readonly trainedTokens: number;
  /** Samples in which a trained call has no log-probabilities. */
  readonly withoutLogprobs: number;
  /** Samples by the label of their branch. */
  readonly labels: Readonly<Record<string, number>>;
  /** Of the agent, whose ids are known. */
  readonly calls: number;
  /** In no sample, since the engine did not say their ids. */
  readonly callsWithoutIds: number;
  /** The last of the hash chain; null = no calls. */
  readonly link: string | null;
  /** null = there are samples. */
  readonly notTrainable: { readonly reason: UntrainableReason; readonly message: string } | null;
}

export function noSamples(
  reason: UntrainableReason,
  message: string,
  counts: Partial<Pick<RolloutSamples, 'calls' | 'callsWithoutIds' | 'link'>> = {},
): RolloutSamples {
  return {
    ...{ count: 0, tokens: 0, trainedTokens: 0, withoutLogprobs: 0, labels: {} },
    ...{ calls: 0, callsWithoutIds: 0, link: null, ...counts },
    notTrainable: { reason, message },
  };
}

/** Of an end that leaves none, whatever its agent did; null = the end does not stand in the way. One that nobody graded may be graded by its trainer. */
export function samplesOfEnd({
  status,
  stage,
  cause,
  trainable,
}: Pick<RolloutOutcome, 'status' | 'stage' | 'cause' | 'trainable'>): RolloutSamples | null {
  if (status === 'cancelled') return noSamples('cancelled', 'the rollout was cancelled');
  if (trainable || (status === 'success' && cause === null)) return null;
  return noSamples('outcome', `it ended as ${cause ?? status} (${stage})`);
}

/** As status, API and callbacks say it. */
export function samplesDocumentOf(samples: RolloutSamples): z.output<typeof samplesDocument> {
  return {
    ...{ count: samples.count, tokens: samples.tokens, trained_tokens: samples.trainedTokens },
    ...{ without_log_probs: samples.withoutLogprobs, labels: { ...samples.labels } },
    ...{ calls: samples.calls, calls_without_ids: samples.callsWithoutIds, link: samples.link },
    not_trainable: samples.notTrainable === null ? null : { ...samples.notTrainable },
  };
}
