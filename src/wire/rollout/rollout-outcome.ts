import type { Outcome } from '../outcome.ts';
import type { ErrorCategory } from './callback-payloads.ts';
import type { RolloutSamples } from './rollout-samples.ts';

/** How a rollout ended, as the status route, our API and the archive say it. */
export interface RolloutOutcome extends Outcome {
  readonly status: 'success' | 'failure' | 'cancelled';
  /** Only where the status is success and the sample is not removed. */
  readonly reward: number | null;
  readonly errMessage: string | null;
  readonly errCategory: ErrorCategory | null;
  /** Absent = nobody wants samples of it. */
  readonly samples?: RolloutSamples;
}
