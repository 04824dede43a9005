/**
 * Rewards as functions of a sample's text: no network, no clock, no state, unless the name says so. What a verifier wrote is no business of this folder;
 * these are for rollouts that nobody verifies. The rules are those of Miles' reward hub; `docs/rewards.md` has them, and where they differ.
 */

/** What is scored. */
export interface RewardSample {
  /** As the dataset has it: a text, or messages. */
  readonly prompt: unknown;
  /** null = nothing was sampled. */
  readonly response: string | null;
  /** As the dataset has it; null = none. */
  readonly label: unknown;
  /** Ids of prompt and response, in order. */
  readonly tokens: readonly number[];
  readonly metadata: Readonly<Record<string, unknown>>;
}

/** A finite number, or an object whose fields a trainer chooses from (`dapo`: `score`, `acc`, `pred`). */
export type RewardValue = number | Readonly<Record<string, unknown>>;

/** Throws a RolloutError where the sample cannot be scored: it has no reward then, which is not the same as 0. */
export type RewardRule = (sample: RewardSample) => RewardValue;

/** A label as text: numbers as they are written; empty where there is none. */
export function labelText(label: unknown): string {
  if (typeof label === 'string') return label;
  if (typeof label === 'number' || typeof label === 'bigint') return String(label);
  return '';
}
