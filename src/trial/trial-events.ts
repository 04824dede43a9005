import type { Phase } from '../core/errors.ts';
import type { CancellationReceipt } from '../wire/harbor/slipway-record.ts';
import type { TrialResult } from '../wire/harbor/trial-result.ts';

/** What a trial tells while it runs, in order. Observers cannot change anything and cannot break anything. */
export type TrialEvent =
  | { readonly type: 'trial:started'; readonly trialName: string; readonly taskName: string }
  | {
      readonly type: 'stage:started';
      readonly trialName: string;
      /** For people: `starting environment`, `running agent`. */
      readonly stage: string;
      readonly phase: Phase;
      readonly step: string | null;
    }
  | {
      readonly type: 'stage:ended';
      readonly trialName: string;
      readonly stage: string;
      readonly phase: Phase;
      readonly step: string | null;
      readonly durationMs: number;
      readonly isFailed: boolean;
    }
  /** One line of a slow stage: an image build, a pull. */
  | { readonly type: 'stage:progress'; readonly trialName: string; readonly line: string }
  | {
      readonly type: 'trial:cancelled';
      readonly trialName: string;
      readonly receipt: CancellationReceipt;
    }
  | { readonly type: 'trial:ended'; readonly trialName: string; readonly result: TrialResult };

export type TrialObserver = (event: TrialEvent) => void;

/** What a trial does at this moment, for displays and for finding a stuck one. */
export interface TrialProgress {
  readonly phase: Phase;
  readonly stage: string;
  readonly step: string | null;
  readonly since: Date;
  /** When the last event was. */
  readonly lastEventAt: Date;
}
