import type { Clock } from '../core/clock.ts';
import type { Logger } from '../core/logger.ts';
import type { CancellationReceipt } from '../wire/harbor/slipway-record.ts';
import type { TrialResult } from '../wire/harbor/trial-result.ts';
import { problemOf } from './sandboxes.ts';
import type { StageRunner } from './sequence.ts';
import type { RoundRun, TrialRun } from './stage.ts';
import type { TrialEvent, TrialObserver, TrialProgress } from './trial-events.ts';
import type { TrialRecord } from './trial-record.ts';

export interface StageTellerOptions {
  readonly trialName: string;
  readonly record: TrialRecord;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly observe: TrialObserver;
}

/** Runs stages under their names: keeps phase, trail and progress, writes the log, tells observers, which cannot break anything. */
export class StageTeller {
  readonly #options: StageTellerOptions;
  #progress: TrialProgress;

  constructor(options: StageTellerOptions) {
    this.#options = options;
    const now = options.clock.now();
    this.#progress = { phase: 'queue', stage: 'queued', step: null, since: now, lastEventAt: now };
  }

  get progress(): TrialProgress {
    return this.#progress;
  }

  started(taskName: string): void {
    const { trialName } = this.#options;
    this.#emit({ type: 'trial:started', trialName, taskName });
  }

  line(line: string): void {
    const { trialName, logger } = this.#options;
    logger.log('debug', line);
    this.#emit({ type: 'stage:progress', trialName, line });
  }

  cancelled(receipt: CancellationReceipt): void {
    const { trialName } = this.#options;
    this.#emit({ type: 'trial:cancelled', trialName, receipt });
  }

  ended(result: TrialResult): void {
    const { trialName } = this.#options;
    this.#emit({ type: 'trial:ended', trialName, result });
  }

  runner(): StageRunner {
    return async (stage, run, signal) => {
      signal.throwIfAborted();
      if (stage.applies?.(run) === false) return;
      const { trialName, record, clock, logger } = this.#options;
      const { name, phase } = stage;
      const step = stepOf(run);
      const about = { trialName, stage: name, phase, step };
      record.phase = phase;
      record.trail.push(step === null ? name : `${step}: ${name}`);
      const since = clock.monotonicMs();
      this.#progress = { ...this.#progress, phase, stage: name, step, since: clock.now() };
      logger.log('info', name, step === null ? undefined : { step });
      this.#emit({ type: 'stage:started', ...about });
      let isFailed = true;
      try {
        await stage.run(run, signal);
        isFailed = false;
      } catch (error) {
        logger.log('warn', `${name} failed`, { reason: problemOf(error) });
        throw error;
      } finally {
        const durationMs = clock.monotonicMs() - since;
        this.#emit({ type: 'stage:ended', ...about, durationMs, isFailed });
      }
    };
  }

  #emit(event: TrialEvent): void {
    this.#progress = { ...this.#progress, lastEventAt: this.#options.clock.now() };
    try {
      this.#options.observe(event);
    } catch (error) {
      this.#options.logger.log('warn', 'an observer of the trial failed', {
        reason: problemOf(error),
      });
    }
  }
}

function stepOf(run: TrialRun): string | null {
  return (run as Partial<RoundRun>).round?.step?.name ?? null;
}
