import type { CancellationReceipt } from '../wire/harbor/slipway-record.ts';
import type { TrialResult } from '../wire/harbor/trial-result.ts';
import type { TrialProgress } from './trial-events.ts';
import type { TrialParts, TrialRequest } from './trial-options.ts';

/** One run of an agent on a task, from the empty folder to `result.json`. */
export interface Trial {
  readonly name: string;
  /** Absolute folder `<trials_dir>/<trial_name>`. */
  readonly dir: string;
  readonly progress: TrialProgress;
  /**
   * Runs all stages and resolves with the record, whatever happened: failures, timeouts and cancellation are in it. Rejects only when the
   * trial folder itself cannot be written (DISK_FULL, INTERNAL). Called once.
   */
  run(signal: AbortSignal): Promise<TrialResult>;
  /**
   * Kills the agent, destroys the environment and says what is gone, in any phase; before `run` it makes `run` end at once. Idempotent:
   * later calls share the receipt. A finished trial answers null.
   */
  cancel(): Promise<CancellationReceipt | null>;
}

export type CreateTrial = (request: TrialRequest, parts: TrialParts) => Trial;
