/**
 * The calls of one route on disk: spilled steps of a trajectory, appended as they come and then forgotten. What waits for the disk is bounded, since no call is
 * sent before there is room. A failed write, or a file that would be too large, ends the capture of this rollout and nothing else.
 */
import type { Clock } from '../../core/clock.ts';
import { isRolloutError, messageOf, RolloutError } from '../../core/errors.ts';
import type { Logger } from '../../core/logger.ts';
import type { NewStep, TrajectoryLog } from '../../trajectory/trajectory-log.ts';
import type { CaptureActivity } from '../../wire/rollout/route-activity.ts';
import type { CallRecord, RouteCapture, WantedOfEngine } from './call-capture.ts';
import { FileCallRecord } from './call-record.ts';
import { lastStep } from './call-steps.ts';
import { EarlierCalls } from './earlier-calls.ts';

/** Of all steps of a route that wait for the disk, in characters. */
const mostWaiting = 8 * 1024 * 1024;

export interface RouteCaptureParts {
  readonly rolloutId: string;
  readonly clock: Clock;
  readonly logger: Logger;
  /** Of the file, about. */
  readonly maxBytes: number;
  readonly wanted?: WantedOfEngine;
  /** Opens the file anew; called once, for the first call. */
  readonly openLog: () => Promise<TrajectoryLog>;
}

export interface SpilledStep {
  readonly step: NewStep;
  /** What the step's ids stand for. */
  readonly sampledText: string;
  /** About. */
  readonly size: number;
}

export class FileRouteCapture implements RouteCapture {
  readonly wanted?: WantedOfEngine;
  readonly unknownFields = new Set<string>();
  readonly earlier: EarlierCalls;
  readonly #parts: RouteCaptureParts;
  #log: Promise<TrajectoryLog> | null = null;
  #calls = 0;
  #ended = 0;
  #waiting = 0;
  #bytes = 0;
  #problem: CaptureActivity['problem'] = null;
  /** Nothing is written behind a gap. */
  #hasGap = false;
  /** The end of all writing so far. */
  #tail: Promise<void> = Promise.resolve();
  #closing: Promise<void> | null = null;
  #whenWritten: (() => void)[] = [];

  constructor(parts: RouteCaptureParts) {
    this.#parts = parts;
    if (parts.wanted !== undefined) this.wanted = parts.wanted;
    this.earlier = new EarlierCalls(parts.clock);
  }

  get activity(): CaptureActivity {
    return { calls: this.#calls, problem: this.#problem };
  }

  begin(): CallRecord {
    return new FileCallRecord(this, this.#parts.clock);
  }

  /** The number of a call that was sent. */
  nextCall(): number {
    this.#calls += 1;
    return this.#calls;
  }

  callEnded(): void {
    this.#ended += 1;
  }

  async room(signal: AbortSignal): Promise<void> {
    while (this.#waiting > mostWaiting && this.#problem === null) {
      signal.throwIfAborted();
      const { promise, resolve, reject } = Promise.withResolvers<undefined>();
      const onAbort = (): void => reject(signal.reason as Error);
      signal.addEventListener('abort', onAbort, { once: true });
      this.#whenWritten.push(() => resolve(undefined));
      try {
        await promise;
      } finally {
        signal.removeEventListener('abort', onAbort);
      }
    }
  }

  append(spilled: SpilledStep): void {
    if (this.#problem !== null || this.#closing !== null) return;
    this.#bytes += spilled.size;
    if (this.#bytes > this.#parts.maxBytes) {
      this.#fail(tooLarge(this.#parts.maxBytes));
      return;
    }
    this.#waiting += spilled.size;
    this.#log ??= this.#parts.openLog();
    const log = this.#log;
    this.#tail = this.#tail.then(() => this.#write(log, spilled));
  }

  written(): Promise<void> {
    return this.#tail;
  }

  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  async #write(opening: Promise<TrajectoryLog>, { step, sampledText, size }: SpilledStep) {
    try {
      const log = await opening;
      if (!this.#hasGap) await log.append(step, { sampledText });
    } catch (error) {
      this.#hasGap = true;
      this.#fail(error);
    } finally {
      this.#waiting -= size;
      for (const wake of this.#whenWritten.splice(0)) wake();
    }
  }

  async #close(): Promise<void> {
    await this.#tail;
    if (this.#log === null) return;
    try {
      const log = await this.#log;
      // Its absence says that something is missing.
      const isWhole = this.#problem === null && this.#ended === this.#calls;
      if (isWhole) await log.append(lastStep(this.#calls, this.#parts.clock.now()));
      await log.leave();
    } catch (error) {
      this.#fail(error);
    }
  }

  #fail(error: unknown): void {
    if (this.#problem !== null) return;
    const code = isRolloutError(error) ? error.code : 'INTERNAL';
    const { rolloutId, logger } = this.#parts;
    this.#problem = { code, message: messageOf(error) };
    logger.log('warn', 'calls of a rollout are not captured any more', {
      ...{ rolloutId, code, error: messageOf(error), calls: this.#calls },
    });
  }
}

function tooLarge(maxBytes: number): RolloutError {
  return new RolloutError(
    'CAPTURE_TOO_LARGE',
    `the calls of a rollout are captured up to ${maxBytes} bytes`,
    {
      ...{ phase: 'model-call', field: 'gateway.capture_bytes' },
      remedy: 'Raise gateway.capture_bytes, or give the rollout a budget of turns.',
    },
  );
}
