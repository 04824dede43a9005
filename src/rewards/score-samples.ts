/**
 * Rewards of samples: by the trainer's own function for all at once, or by the type that each sample's metadata or the configuration names. A type may begin with
 * `boxed_`: its rule then sees the content of the last box instead of the response.
 */
import { RolloutError } from '../core/errors.ts';
import { lastBoxed } from './boxed.ts';
import { rewardRules } from './registry.ts';
import { remoteReward, type RemoteRewardOptions } from './remote-reward.ts';
import type { RewardSample, RewardValue } from './reward.ts';

/** One value per sample, in their order. */
export type RewardFunction = (
  samples: readonly RewardSample[],
  signal: AbortSignal,
) => Promise<readonly RewardValue[]> | readonly RewardValue[];

export interface ScoringOptions {
  /** For samples whose `metadata.rm_type` names none; null = each has to. */
  readonly type: string | null;
  /** It scores every sample, whatever their type. */
  readonly custom: RewardFunction | null;
  /** null = the type `remote_rm` is refused. */
  readonly remote: RemoteRewardOptions | null;
  /** From 0, 1 excluded. */
  readonly random: () => number;
}

const boxedPrefix = 'boxed_';
const remoteType = 'remote_rm';
const randomType = 'random';

/** REWARD_TYPE_INVALID, REWARD_LABEL_INVALID, REWARD_REMOTE_FAILED, REWARD_FUNCTION_INVALID. Rejects with the first of them. */
export async function scoreSamples(
  samples: readonly RewardSample[],
  options: ScoringOptions,
  signal: AbortSignal,
): Promise<readonly RewardValue[]> {
  if (options.custom === null)
    return Promise.all(samples.map((sample) => scoreByType(sample, options, signal)));
  const values = await options.custom(samples, signal);
  checkValues(values, samples.length);
  return values;
}

async function scoreByType(
  sample: RewardSample,
  options: ScoringOptions,
  signal: AbortSignal,
): Promise<RewardValue> {
  const named = typeOf(sample, options);
  const isBoxed = named.startsWith(boxedPrefix);
  const type = isBoxed ? named.slice(boxedPrefix.length) : named;
  const scored = isBoxed ? { ...sample, response: lastBoxed(sample.response ?? '') ?? '' } : sample;
  if (type === remoteType && options.remote !== null)
    return remoteReward(scored, options.remote, signal);
  if (type === randomType) return options.random() < 0.5 ? 0 : 1;
  const rule = rewardRules.get(type);
  if (rule === undefined) throw typeError(type, options);
  return rule(scored);
}

function typeOf(sample: RewardSample, options: ScoringOptions): string {
  const own = sample.metadata['rm_type'];
  return (typeof own === 'string' && own !== '' ? own : (options.type ?? '')).trim();
}

function typeError(type: string, { remote }: ScoringOptions): RolloutError {
  const known = [...rewardRules.keys(), randomType, remoteType].sort().join(', ');
  const message =
    type === ''
      ? 'No reward type is named.'
      : type === remoteType && remote === null
        ? 'The type remote_rm needs the address of a reward model.'
        : `There is no reward type "${type}".`;
  return new RolloutError('REWARD_TYPE_INVALID', message, {
    phase: 'verifier',
    field: type === remoteType ? 'rewards.url' : 'metadata.rm_type',
    remedy: `Name one of ${known} in the row's metadata or in rewards.type; boxed_ may stand before it.`,
  });
}

function checkValues(values: unknown, count: number): void {
  if (Array.isArray(values) && values.length === count && values.every(isValue)) return;
  throw new RolloutError(
    'REWARD_FUNCTION_INVALID',
    `The reward function gave back something other than ${count} rewards.`,
    {
      phase: 'verifier',
      field: 'rewards.function',
      remedy: 'Return a list with a finite number, or an object, for each sample.',
    },
  );
}

function isValue(value: unknown): boolean {
  return typeof value === 'number'
    ? Number.isFinite(value)
    : typeof value === 'object' && value !== null;
}
