/** Fills running places with rollouts that wait, in the order of the queue. One loop, whoever wakes it. */
import type { Clock } from '../core/clock.ts';
import { messageOf } from '../core/errors.ts';
import type { Logger } from '../core/logger.ts';
import type { FailurePause } from './failure-pause.ts';
import type { LiveRollout } from './live-rollout.ts';
import type { Lease, RolloutQueue } from './queue.ts';

/** After a queue failed. */
const retryMs = 1_000;

export interface DispatcherParts {
  readonly queue: RolloutQueue;
  readonly live: ReadonlyMap<string, LiveRollout>;
  readonly pause: FailurePause;
  /** How many may run now. */
  readonly cap: () => number;
  /** Runs a rollout until its running place is free; `again` = it had not begun and waits anew. Never rejects. */
  readonly run: (rollout: LiveRollout) => Promise<'done' | 'again'>;
  readonly stopping: AbortSignal;
  readonly clock: Clock;
  readonly logger: Logger;
}

export class Dispatcher {
  readonly #parts: DispatcherParts;
  readonly #running = new Map<LiveRollout, Lease>();
  #isOpen = false;
  #isLooping = false;
  #isWanted = false;
  #idle: PromiseWithResolvers<void> | null = null;

  constructor(parts: DispatcherParts) {
    this.#parts = parts;
  }

  get running(): number {
    return this.#running.size;
  }

  /** How many may run now. */
  get cap(): number {
    return this.#parts.cap();
  }

  get runningRollouts(): readonly LiveRollout[] {
    return [...this.#running.keys()];
  }

  /** Nothing starts before. */
  open(): void {
    this.#isOpen = true;
    this.wake();
  }

  /** There may be something to start. */
  wake(): void {
    this.#isWanted = true;
    if (!this.#isLooping && this.#isOpen) void this.#loop();
  }

  /** Resolves when nothing runs. */
  async idle(): Promise<void> {
    if (this.#running.size === 0) return;
    this.#idle ??= Promise.withResolvers();
    await this.#idle.promise;
  }

  /** Keeps leases that would end by themselves, until `signal` fires. */
  async keepLeases(signal: AbortSignal): Promise<void> {
    const { queue, clock, logger } = this.#parts;
    if (queue.renewEveryMs === null) return;
    const next = (ms: number): Promise<boolean> =>
      clock.sleep(ms, signal).then(
        () => true,
        () => false,
      );
    while (await next(queue.renewEveryMs)) {
      const renewals = [...this.#running.values()].map((lease) =>
        lease.renew().catch((error: unknown) =>
          logger.log('error', 'a lease could not be kept', {
            rolloutId: lease.entry.id,
            error: messageOf(error),
          }),
        ),
      );
      await Promise.all(renewals);
    }
  }

  async #loop(): Promise<void> {
    const { clock, logger, stopping } = this.#parts;
    this.#isLooping = true;
    try {
      while (this.#isWanted) {
        this.#isWanted = false;
        await this.#fill();
      }
    } catch (error) {
      logger.log('error', 'the queue failed', { error: messageOf(error) });
      clock.sleep(retryMs, stopping).then(
        () => this.wake(),
        () => undefined,
      );
    } finally {
      this.#isLooping = false;
    }
  }

  async #fill(): Promise<void> {
    const { queue, live, pause, cap, stopping } = this.#parts;
    while (!stopping.aborted && this.#running.size < cap() && pause.isOpen) {
      const lease = await queue.take();
      if (lease === null) return;
      const rollout = live.get(lease.entry.id);
      if (rollout?.endedBy !== null) await lease.done();
      // Read again: an abort or a pause may have come while the queue answered.
      else if (this.#parts.stopping.aborted || !pause.mayStart(rollout.id)) await lease.giveBack();
      else this.#start(rollout, lease);
    }
  }

  #start(rollout: LiveRollout, lease: Lease): void {
    this.#running.set(rollout, lease);
    void this.#parts.run(rollout).then(async (end) => {
      this.#running.delete(rollout);
      const over = end === 'again' ? lease.giveBack() : lease.done();
      await over.catch((error: unknown) =>
        this.#parts.logger.log('error', 'a lease could not be ended', {
          error: messageOf(error),
        }),
      );
      if (this.#running.size === 0) {
        this.#idle?.resolve();
        this.#idle = null;
      }
      this.wake();
    });
  }
}
