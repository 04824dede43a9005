import type { RolloutService } from './rollout-service.ts';
import type { SchedulerOptions, SchedulerParts } from './scheduler-parts.ts';

export interface StopOptions {
  /** How long running rollouts may go on. */
  readonly drainMs: number;
  /** Ends the draining early. */
  readonly hurry: AbortSignal;
  /** How long ending what is left may take. */
  readonly abortMs: number;
}

/** Takes rollouts in, runs them in fair order and sees every one through to its end. */
export class RolloutScheduler implements RolloutService {
  /** CONFIG_INVALID when the limits are no limits. */
  constructor(_options: SchedulerOptions, _parts: SchedulerParts) {}

  /** Takes up what an earlier life left, then runs rollouts. Before it, `submit` answers `stopping`. */
  start(_signal: AbortSignal): Promise<{ readonly recovered: number }> {
    throw new Error('not built yet');
  }

  /**
   * Refuses, drains, ends what is left: rollouts whose agent has not begun stay queued in the store, others end as a failure whose callbacks are in the
   * outbox. Borrows its parts: whoever made them closes them afterwards. Idempotent.
   */
  stop(_options: StopOptions): Promise<void> {
    throw new Error('not built yet');
  }

  submit(): ReturnType<RolloutService['submit']> {
    throw new Error('not built yet');
  }

  status(): ReturnType<RolloutService['status']> {
    throw new Error('not built yet');
  }

  cancel(): ReturnType<RolloutService['cancel']> {
    throw new Error('not built yet');
  }

  inspect(): ReturnType<RolloutService['inspect']> {
    throw new Error('not built yet');
  }

  list(): ReturnType<RolloutService['list']> {
    throw new Error('not built yet');
  }

  events(): ReturnType<RolloutService['events']> {
    throw new Error('not built yet');
  }

  onEvents(): () => void {
    throw new Error('not built yet');
  }

  admission(): ReturnType<RolloutService['admission']> {
    throw new Error('not built yet');
  }

  backendHealth(): Readonly<Record<string, unknown>> {
    throw new Error('not built yet');
  }

  deadLetters(): ReturnType<RolloutService['deadLetters']> {
    throw new Error('not built yet');
  }

  replay(): ReturnType<RolloutService['replay']> {
    throw new Error('not built yet');
  }
}
