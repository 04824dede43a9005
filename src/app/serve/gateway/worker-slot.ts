/**
 * The place of one process of the gateway. A process that ends by itself is followed by another one on the same port, sooner or later by how often it happened;
 * one that does not answer for long is ended first.
 */
import type { ServeConfig } from '../../../config/serve/read-serve-config.ts';
import type { Clock } from '../../../core/clock.ts';
import { messageOf } from '../../../core/errors.ts';
import { LinkedAbort } from '../../../core/linked-abort.ts';
import type { Logger } from '../../../core/logger.ts';
import type { HeldRoute } from '../../../gateway/model-gateway.ts';
import type { GatewayFacts, ProcessVitals } from '../../../telemetry/facts.ts';
import type { RouteActivity } from '../../../wire/rollout/route-activity.ts';
import type { EndedCall, QuestionName, WorkerAnswers, WorkerQuestion } from './worker-messages.ts';
import { WorkerProcess, workerLost, type AskOptions } from './worker-process.ts';

const firstPauseMs = 100;
const longestPauseMs = 10_000;
/** One that has served for so long begins anew with the first pause. */
const goodMs = 30_000;
export const lookEveryMs = 5_000;
/** As many looks without an answer: it is stuck. A machine that stood still has looked once. */
export const stuckLooks = 6;
const lastWordsMs = 3_000;

export interface WorkerSlotParts {
  /** From 1. */
  readonly number: number;
  readonly config: ServeConfig;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly health: () => Readonly<Record<string, unknown>>;
  /** What the next process begins with. */
  readonly held: (slot: WorkerSlot) => readonly HeldRoute[];
  readonly note: () => Promise<void>;
  readonly onCalls: (ended: readonly EndedCall[]) => void;
}

export class WorkerSlot {
  readonly #parts: WorkerSlotParts;
  readonly #life = new LinkedAbort([]);
  #process: WorkerProcess | null = null;
  #isUp = false;
  #up = Promise.withResolvers<undefined>();
  #port: number;
  #restarts = 0;
  #failures = 0;
  #vitals: ProcessVitals | null = null;
  /** When a call ended, or the process was looked at. */
  #callsRunning = 0;
  #running: Promise<void> = Promise.resolve();

  constructor(parts: WorkerSlotParts) {
    this.#parts = parts;
    const { dataPort } = parts.config.listen;
    this.#port = dataPort === 0 ? 0 : dataPort + parts.number - 1;
  }

  get isUp(): boolean {
    return this.#isUp;
  }

  /** Resolves when it serves. */
  get up(): Promise<undefined> {
    return this.#up.promise;
  }

  get pid(): number | null {
    return this.#process?.pid ?? null;
  }

  /** Resolves with its address; rejects when the first process cannot listen: then there is no second one. */
  async start(): Promise<string> {
    const process = this.#begin();
    const url = await process.url;
    this.#running = this.#keepUp(process);
    return url;
  }

  /** GATEWAY_WORKER_LOST when it does not serve, ends before it answers, or does not answer. */
  async ask<Name extends QuestionName>(
    question: WorkerQuestion<Name>,
    options: AskOptions = {},
  ): Promise<WorkerAnswers[Name]> {
    if (this.#process === null || !this.#isUp) throw workerLost('it does not serve');
    return await this.#process.ask(question, options);
  }

  /** What is to be ended has ended with its process: then the answer is `otherwise`, at once. One that only does not answer is GATEWAY_WORKER_LOST. */
  async askUnlessDead<Name extends QuestionName>(
    question: WorkerQuestion<Name>,
    otherwise: WorkerAnswers[Name],
    options: AskOptions = {},
  ): Promise<WorkerAnswers[Name]> {
    const process = this.#process;
    if (process === null || !this.#isUp) {
      this.tell(question);
      return otherwise;
    }
    try {
      return await process.ask(question, options);
    } catch (error) {
      if (process.hasExited) return otherwise;
      throw error;
    }
  }

  /** Also one that does not serve yet; nobody waits for it. */
  tell<Name extends QuestionName>(question: WorkerQuestion<Name>): void {
    this.#process?.ask(question).catch(() => undefined);
  }

  async activity(rolloutId: string): Promise<RouteActivity | null> {
    return this.#process !== null && this.#isUp ? await this.#process.activity(rolloutId) : null;
  }

  facts(routes: number): GatewayFacts {
    return {
      ...{ worker: String(this.#parts.number), routes },
      callsRunning: this.#callsRunning,
      own: {
        ...{ isUp: this.#isUp, restarts: this.#restarts },
        vitals: this.#vitals,
      },
    };
  }

  async close(): Promise<void> {
    this.#life.abort(new Error('the gateway closes'));
    const process = this.#process;
    if (this.#isUp)
      await process?.ask({ name: 'close' }, { ms: lastWordsMs }).catch(() => undefined);
    await process?.end();
    await this.#running;
  }

  #begin(): WorkerProcess {
    const { config, clock, logger, number, held, onCalls, health, note } = this.#parts;
    const process = new WorkerProcess({
      ...{ clock, logger, health, note },
      onCalls: (ended, running) => {
        this.#callsRunning = running;
        onCalls(ended);
      },
    });
    this.#process = process;
    process.begin({ config, worker: number, port: this.#port, held: held(this) });
    process.url.then(
      (url) => {
        this.#port = Number(new URL(url).port);
        this.#isUp = true;
        this.#up.resolve(undefined);
      },
      () => undefined, // told where it is waited for
    );
    return process;
  }

  async #keepUp(first: WorkerProcess): Promise<void> {
    const { clock, logger, number } = this.#parts;
    let process = first;
    for (;;) {
      const sinceMs = clock.monotonicMs();
      const why = await this.#outlived(process);
      if (this.#isClosing()) return;
      this.#failures = clock.monotonicMs() - sinceMs >= goodMs ? 1 : this.#failures + 1;
      const pauseMs = Math.min(longestPauseMs, firstPauseMs * 2 ** (this.#failures - 1));
      const rollouts = this.#parts.held(this).length;
      logger.log('error', 'a process of the gateway is lost: it is started again', {
        ...{ worker: number, port: this.#port, why, rollouts, pauseMs },
      });
      await clock.sleep(pauseMs, this.#life.signal).catch(() => undefined);
      if (this.#isClosing()) return;
      this.#restarts += 1;
      process = this.#begin();
    }
  }

  /** Resolves with why it serves no more. */
  async #outlived(process: WorkerProcess): Promise<string> {
    const { logger, number } = this.#parts;
    using looking = new LinkedAbort([this.#life.signal]);
    try {
      const url = await process.url;
      if (this.#restarts > 0)
        logger.log('info', 'a process of the gateway serves again', { worker: number, url });
      void this.#look(process, looking.signal);
    } catch (error) {
      // It may still be there, without a port.
      await process.end();
      return messageOf(error);
    } finally {
      if (this.#isClosing()) await process.end();
    }
    const why = await process.exited;
    looking.abort(new Error('it has ended'));
    this.#isUp = false;
    this.#up = Promise.withResolvers();
    this.#vitals = null;
    this.#callsRunning = 0;
    this.#process = null;
    return why;
  }

  #isClosing(): boolean {
    return this.#life.signal.aborted;
  }

  async #look(process: WorkerProcess, signal: AbortSignal): Promise<void> {
    const { clock, logger, number } = this.#parts;
    let unanswered = 0;
    let isAsked = false;
    while (!signal.aborted) {
      unanswered = isAsked ? unanswered + 1 : 0;
      if (unanswered >= stuckLooks) {
        logger.log('error', 'a process of the gateway is stuck: it is killed', { worker: number });
        await process.end();
        return;
      }
      if (!isAsked) {
        isAsked = true;
        process.ask({ name: 'vitals' }, { ms: null }).then(
          (vitals) => {
            isAsked = false;
            this.#vitals = vitals.process;
            this.#callsRunning = vitals.callsRunning;
          },
          () => undefined, // it has ended
        );
      }
      await clock.sleep(lookEveryMs, signal).catch(() => undefined);
    }
  }
}
