/** How far a rollout that runs has come: kept for whoever looks, and each new stage told as an event. */
import { messageOf } from '../core/errors.ts';
import type { RolloutProgress } from '../wire/rollout/progress.ts';
import type { LiveRollout } from './live-rollout.ts';
import type { SchedulerParts } from './scheduler-parts.ts';

export class ProgressOfRun {
  readonly #rollout: LiveRollout;
  readonly #parts: Pick<SchedulerParts, 'store' | 'clock' | 'logger'>;

  constructor(rollout: LiveRollout, parts: Pick<SchedulerParts, 'store' | 'clock' | 'logger'>) {
    this.#rollout = rollout;
    this.#parts = parts;
  }

  /** As its backend tells it. */
  note(progress: RolloutProgress): void {
    const { store, logger } = this.#parts;
    const { id, tenant, progress: before, endedBy } = this.#rollout;
    if (endedBy !== null) return;
    this.#rollout.progress = progress;
    if (before?.stage === progress.stage) return;
    const payload = { stage: progress.stage };
    store
      .note([
        { rolloutId: id, tenant, type: 'rollout:stage', at: progress.lastProgressAt, payload },
      ])
      .catch((error: unknown) =>
        logger.log('debug', 'a stage was not noted', { rolloutId: id, error: messageOf(error) }),
      );
  }

  /** What the scheduler itself does with it. */
  show(stage: string, kind: 'archive' | null = null): void {
    const now = this.#parts.clock.now();
    const waitingOn =
      kind === null ? null : { kind, owner: 'scheduler', detail: null, since: now, deadline: null };
    this.#rollout.progress = { stage, waitingOn, lastProgressAt: now };
  }
}
