/**
 * One sequence that a trainer learns from, as plain numbers: what the engine read and sampled, with a mask. It is made from the samples of a rollout
 * (`wire/samples/sample-lines.ts`) or by a port that samples itself. Nothing in the collector encodes text.
 */

/** Tokens that one call of the model sampled; positions in `tokens`, `end` exclusive. */
export interface SampledSpan {
  readonly begin: number;
  readonly end: number;
  readonly isTrained: boolean;
  /** Of the weights that sampled it, as the engine said; null = it does not say. */
  readonly weightVersion: string | null;
}

export interface TrainingSample {
  /** Prompt, then everything behind it. */
  readonly tokens: readonly number[];
  readonly promptLength: number;
  /** One for each token behind the prompt: 1 = it is trained. */
  readonly lossMask: readonly (0 | 1)[];
  /** One for each token behind the prompt, 0 where nothing was sampled; null = the engine said none. */
  readonly logprobs: readonly number[] | null;
  /** Share of its rollout; those of one rollout add up to 1. */
  readonly weight: number;
  readonly isTruncated: boolean;
  readonly spans: readonly SampledSpan[];
}

/** Tokens that are trained. */
export function trainedLength(sample: Pick<TrainingSample, 'lossMask'>): number {
  let length = 0;
  for (const bit of sample.lossMask) length += bit;
  return length;
}

/** The same tokens, none of them trained. */
export function masked(sample: TrainingSample): TrainingSample {
  return {
    ...sample,
    lossMask: sample.lossMask.map(() => 0),
    spans: sample.spans.map((span) => ({ ...span, isTrained: false })),
  };
}

/**
 * The oldest weights behind samples. `started` is the trainer's version when the rollout began: a call that an update fell into names the later one of its two.
 * What was sampled before that, in an earlier round, is older. null = unknown.
 */
export function oldestVersion(
  started: number | null,
  samples: readonly Pick<TrainingSample, 'spans'>[],
): number | null {
  if (started === null) return null;
  const spans = samples.flatMap((sample) => sample.spans).filter(({ isTrained }) => isTrained);
  const named = spans.map(({ weightVersion }) => weightVersion ?? '');
  return Math.min(started, ...named.filter((name) => /^\d+$/.test(name)).map(Number));
}
