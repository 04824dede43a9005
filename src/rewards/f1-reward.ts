/** Overlap of words between a response and its label, as in question answering. */
import { labelText, type RewardSample } from './reward.ts';

const verdicts = ['yes', 'no', 'noanswer'];

/** 0 to 1: the harmonic mean of precision and recall over words, each counted as often as it stands there. */
export function f1Reward({ response, label }: RewardSample): number {
  if (response === null) return 0;
  const given = normalText(response);
  const wanted = normalText(labelText(label));
  if (given !== wanted && (verdicts.includes(given) || verdicts.includes(wanted))) return 0;
  const had = words(given);
  const needed = words(wanted);
  const shared = sharedCount(had, needed);
  if (shared === 0) return 0;
  const precision = shared / had.length;
  const recall = shared / needed.length;
  return (2 * precision * recall) / (precision + recall);
}

function normalText(text: string): string {
  return words(
    text
      .toLowerCase()
      .replaceAll(/[!-/:-@[-`{-~]/g, '')
      .replaceAll(/(?<![\p{L}\p{N}_])(?:an?|the)(?![\p{L}\p{N}_])/gu, ' '),
  ).join(' ');
}

const words = (text: string): readonly string[] => text.split(/\s+/).filter((word) => word !== '');

function sharedCount(left: readonly string[], right: readonly string[]): number {
  const counts = new Map<string, number>();
  for (const word of right) counts.set(word, (counts.get(word) ?? 0) + 1);
  let shared = 0;
  for (const word of left) {
    const count = counts.get(word) ?? 0;
    if (count === 0) continue;
    counts.set(word, count - 1);
    shared++;
  }
  return shared;
}
