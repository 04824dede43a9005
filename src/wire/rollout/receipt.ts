/** What cancelling a rollout did. */
export interface CancelReceipt {
  readonly rolloutId: string;
  readonly disposition: 'cancelled_queued' | 'cancelled_running' | 'not_found';
  /** Stage in which the cancellation met it; null for one that had not been submitted or had ended. */
  readonly stage: string | null;
  /** Model calls refused from then on, and running ones that were ended. */
  readonly modelCallsEnded: number;
  readonly processesKilled: number;
  /** Kinds of things that were looked for and found absent: `container`, `processes`, `network`. */
  readonly confirmedGone: readonly string[];
  /** False when something could not be confirmed gone within the bound; `problem` says what. */
  readonly isComplete: boolean;
  readonly problem: string | null;
  readonly durationMs: number;
  readonly at: Date;
}
