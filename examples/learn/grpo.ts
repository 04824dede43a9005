/**
 * Group-relative policy optimisation on the collector's groups: a member's advantage is its reward against those of its group, each trained token is moved by it, and a ratio
 * that has left the trust region moves nothing. The log-probabilities of the samples are those that the engine reported; on policy they are the policy's own, to
 * the last digits, and a batch where they are not is refused before it changes anything.
 */
import type { CollectedGroup } from '../../src/collector/group.ts';
import type { TrainingSample } from '../../src/collector/training-sample.ts';
import type { LetterPolicy } from './letter-policy.ts';
import type { PolicyCodec } from './policy-model.ts';

export interface GrpoOptions {
  readonly rate: number;
  /** Ratios outside of 1 ± clip in the advantage's direction have no gradient. */
  readonly clip: number;
  /** The policy as it sampled each version of the weights. */
  readonly versions: ReadonlyMap<string, LetterPolicy>;
  /** `recomputed`: as by a trainer that does not believe the rollout; nothing can be refused then. */
  readonly oldLogprobs: 'reported' | 'recomputed';
  /** Whether tokens of the current weights must have a ratio of 1. */
  readonly isOnPolicy: boolean;
}

export interface GrpoBatch {
  readonly groups: readonly CollectedGroup[];
  readonly codec: PolicyCodec;
  /** Of the current weights. */
  readonly version: string;
}

export interface GrpoReport {
  readonly meanReward: number;
  readonly trainedTokens: number;
  readonly meanRatio: number;
  /** Of tokens that the current weights sampled: how far the ratio is from 1 at most. */
  readonly onPolicyError: number;
}

/** Reported and computed log-probabilities differ by rounding at most. */
const onPolicyTolerance = 1e-9;

export class OffPolicyError extends Error {
  override readonly name = 'OffPolicyError';
}

/** One update of `policy`, in place. OffPolicyError, and no update, where tokens of the current weights have a ratio other than 1. */
export function grpoStep(
  policy: LetterPolicy,
  { groups, codec, version }: GrpoBatch,
  options: GrpoOptions,
): GrpoReport {
  const gradient = policy.zeros();
  const rewards = groups.flatMap((group) => group.members.map(({ reward }) => reward ?? 0));
  const sums = { tokens: 0, ratios: 0, error: 0 };
  for (const group of groups)
    for (const { samples, advantage } of withAdvantages(group))
      for (const sample of samples)
        for (const token of trainedTokens(sample, codec)) {
          const now = policy.logprobs(token.state)[token.action] ?? 0;
          const sampledBy = options.versions.get(token.version) ?? policy;
          const old =
            options.oldLogprobs === 'reported'
              ? token.logprob
              : (sampledBy.logprobs(token.state)[token.action] ?? 0);
          const ratio = Math.exp(now - old);
          sums.tokens += 1;
          sums.ratios += ratio;
          if (token.version === version) sums.error = Math.max(sums.error, Math.abs(ratio - 1));
          const isClipped = advantage > 0 ? ratio > 1 + options.clip : ratio < 1 - options.clip;
          const scale = isClipped ? 0 : (advantage * ratio) / group.members.length;
          policy.addGradient(gradient, { ...token, scale });
        }
  if (options.isOnPolicy && !(sums.error <= onPolicyTolerance))
    throw new OffPolicyError(
      `the current weights sampled tokens whose ratio is off by ${sums.error.toPrecision(3)}: ` +
        'the log-probabilities of the samples are not those of their tokens',
    );
  policy.ascend(gradient, options.rate);
  return {
    meanReward: mean(rewards),
    trainedTokens: sums.tokens,
    meanRatio: sums.ratios / Math.max(1, sums.tokens),
    onPolicyError: sums.error,
  };
}

/** Rewards of a group, normalised; masked members have neither a part in it nor an advantage. */
export function advantages(rewards: readonly number[]): readonly number[] {
  const centre = mean(rewards);
  const spread = Math.sqrt(mean(rewards.map((reward) => (reward - centre) ** 2)));
  return rewards.map((reward) => (spread === 0 ? 0 : (reward - centre) / (spread + 1e-6)));
}

function withAdvantages(
  group: CollectedGroup,
): readonly { readonly samples: readonly TrainingSample[]; readonly advantage: number }[] {
  const counted = group.members.filter(({ isMasked }) => !isMasked);
  const values = advantages(counted.map(({ reward }) => reward ?? 0));
  return counted.map(({ end }, index) => ({ samples: end.samples, advantage: values[index] ?? 0 }));
}

interface TrainedToken {
  readonly state: { readonly exercise: number; readonly position: number };
  readonly action: number;
  readonly logprob: number;
  readonly version: string;
}

/** What the mask says, wherever that is; tokens that are no action of the policy have no parameters. */
function* trainedTokens(sample: TrainingSample, codec: PolicyCodec): Iterable<TrainedToken> {
  const { tokens, promptLength, lossMask, logprobs, spans } = sample;
  for (const [index, bit] of lossMask.entries()) {
    if (bit === 0) continue;
    const at = promptLength + index;
    const state = codec.stateAfter(tokens.slice(0, at));
    const action = codec.actionIds.indexOf(tokens[at] ?? -1);
    if (state === null || action < 0) continue;
    const span = spans.find(({ begin, end }) => begin <= at && at < end);
    const version = span?.weightVersion ?? '';
    yield { state, action, version, logprob: logprobs?.[index] ?? 0 };
  }
}

function mean(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0) / Math.max(1, values.length);
}
