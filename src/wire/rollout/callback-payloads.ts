/**
 * The two callbacks of a rollout: `completion` when the agent's outcome is known, `grader` with the reward. All keys are always present. A numeric
 * reward appears only where the status is success and the sample is not removed.
 */

export type CallbackStatus = 'success' | 'failure';
export type CallbackChannel = 'completion' | 'grader';

/** `http_error` is in the vocabulary; nothing of ours produces it. */
export type ErrorCategory = 'timeout' | 'validation_error' | 'http_error' | 'agent_error';

/** One sample as a user's workflow and grader see it. */
export interface Sample {
  readonly messages: readonly Readonly<Record<string, unknown>>[];
  /** OpenAI-chat shaped copy for the archive; null = keep no trajectory. Never on the wire. */
  readonly trajectoryMessages: readonly Readonly<Record<string, unknown>>[] | null;
  readonly label: string | null;
  /** Finite. */
  readonly reward: number | null;
  readonly isRemoved: boolean;
  readonly metrics: Readonly<Record<string, unknown>>;
  readonly extraFields: Readonly<Record<string, unknown>>;
}

/** What a callback says, before it becomes bytes. */
export interface CallbackReport {
  readonly status: CallbackStatus;
  readonly rolloutId: string;
  /** Diagnostics; null = none. */
  readonly diagnostics: Readonly<Record<string, unknown>> | null;
  readonly errMessage: string | null;
  readonly errCategory: ErrorCategory | null;
  /** Grader channel only. */
  readonly sample?: Sample | null;
}
