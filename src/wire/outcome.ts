import type { ErrorCode, Phase } from '../core/errors.ts';

/** What the verifier decided: reward channels by name, every value finite. */
export interface Verdict {
  readonly rewards: Readonly<Record<string, number>>;
}

/**
 * How a trial ended, for whoever trains or evaluates on it. A verdict exists only where a verifier ran to its end
 * on a cleaned log folder and wrote finite numbers; `cause` is null only when nothing went wrong.
 */
export interface Outcome {
  /** The phase in which the trial ended or first failed. */
  readonly stage: Phase | 'done';
  readonly cause: ErrorCode | null;
  /** Whether the sample may enter training: there is a verdict and no infrastructure failure. */
  readonly trainable: boolean;
  readonly retryable: boolean;
  readonly verdict: Verdict | null;
}
