/**
 * Rewards by type (`docs/rewards.md`) for members that nobody graded: the response is what was sampled and read behind the prompt of the member's last sample, as text,
 * without special tokens. A value that is an object gives its field `score`, or the one that is named.
 */
import { RolloutError } from '../../core/errors.ts';
import type { Vocabulary } from '../../engines/server/token-model.ts';
import type { RewardSample, RewardValue } from '../../rewards/reward.ts';
import { scoreSamples, type ScoringOptions } from '../../rewards/score-samples.ts';
import type { CollectorHooks } from '../hooks.ts';
import type { CollectedMember } from '../member.ts';

export interface RewardByTypeOptions extends ScoringOptions {
  /** Of the model that sampled. */
  readonly vocabulary: Vocabulary;
  /** Field of a value that is an object. */
  readonly key: string;
}

export function rewardByType(
  options: RewardByTypeOptions,
): NonNullable<CollectorHooks['memberReward']> {
  return async (member, signal) => {
    const sample = scoredSample(member, options.vocabulary);
    const [value] = await scoreSamples([sample], options, signal);
    return numberOf(value, options.key);
  };
}

function scoredSample({ request, end }: CollectedMember, vocabulary: Vocabulary): RewardSample {
  const { messages, label, metadata } = request.row;
  const last = end.samples.at(-1);
  const response =
    last === undefined
      ? null
      : vocabulary.decode(last.tokens.slice(last.promptLength), { skipsSpecial: true });
  return { prompt: messages, response, label, tokens: last?.tokens ?? [], metadata };
}

function numberOf(value: RewardValue | undefined, key: string): number {
  const number = typeof value === 'object' ? value[key] : value;
  if (typeof number === 'number' && Number.isFinite(number)) return number;
  throw new RolloutError('REWARD_FUNCTION_INVALID', `the reward has no number under “${key}”`, {
    ...{ phase: 'verifier', field: 'rewards.key' },
    remedy: 'Name the field of the reward that is its number.',
  });
}
