/** A reward by chance for tests of a trainer: 0 or 1, always the same for the same tokens and response. */
import { createHash } from 'node:crypto';
import type { RewardSample } from './reward.ts';

/** The first byte of a SHA-256 over the ids, printed as `[1, 2, 3]`, and the response, modulo 2. */
export function deterministicReward({ tokens, response }: RewardSample): number {
  const text = `[${tokens.join(', ')}]${response ?? ''}`;
  return (createHash('sha256').update(text, 'utf8').digest()[0] ?? 0) % 2;
}
