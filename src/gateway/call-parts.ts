/** What every call has, whichever way it goes. */
import type { Clock } from '../core/clock.ts';
import type { CallShare } from './call-budget.ts';
import type { RelayedCall } from './call-progress.ts';
import type { LiveRoute } from './live-route.ts';

export interface CallParts {
  readonly route: LiveRoute;
  readonly share: CallShare;
  readonly clock: Clock;
  readonly bodyLimitBytes: number;
  /** The upstream's, with its status where it has one. */
  readonly onRefusal: (status: number | null, message: string) => void;
  /** What was changed or left out of the request, or was not as it should be in the answer; for the log. */
  readonly onNotes: (notes: readonly string[]) => void;
  readonly onEnd: (call: RelayedCall) => void;
}
