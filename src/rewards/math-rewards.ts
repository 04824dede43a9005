/** Rewards for exercises whose answer stands in a `\boxed{…}`: 1 where it is the label's, else 0. */
import { lastBoxed } from './boxed.ts';
import { equalAnswers } from './math/equal-answers.ts';
import { labelText, type RewardSample } from './reward.ts';

/** The last box of the whole response. */
export function mathReward({ response, label }: RewardSample): number {
  return boxedReward(response ?? '', label);
}

/** The last box of what follows the last `</think>`, or else the first `###Response`; without either nothing counts. */
export function deepscalerReward({ response, label }: RewardSample): number {
  const text = response ?? '';
  const answer = text.includes('</think>')
    ? text.split('</think>').at(-1)
    : text.split('###Response')[1];
  return boxedReward(answer ?? '', label);
}

/** The last box of what follows the last `<channel|>`, where there is one. */
export function gemmaMathReward({ response, label }: RewardSample): number {
  return boxedReward((response ?? '').split('<channel|>').at(-1) ?? '', label);
}

function boxedReward(text: string, label: unknown): number {
  const wanted = labelText(label);
  const target = wanted.includes('\\boxed') ? lastBoxed(wanted) : wanted;
  const given = lastBoxed(text);
  if (target === null || target === '' || given === null) return 0;
  return equalAnswers(given, target) ? 1 : 0;
}
