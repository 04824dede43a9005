import type { TrialEvent } from '../trial/trial-events.ts';
import type { TrialSummary } from './trial-summary.ts';

/** What a job tells while it runs. Observers cannot change anything and cannot break anything. */
export type JobEvent =
  | TrialEvent
  | { readonly type: 'job:started'; readonly totalTrials: number; readonly finishedBefore: number }
  | {
      readonly type: 'trial:retrying';
      readonly trialName: string;
      /** The try that failed, from 1. */
      readonly attempt: number;
      readonly waitMs: number;
      readonly summary: TrialSummary;
    }
  /** A trial has its final result; once per trial however often it was tried. */
  | { readonly type: 'trial:settled'; readonly summary: TrialSummary };

export type JobObserver = (event: JobEvent) => void;
