/** One process of the gateway, as the server has it: questions have numbers, each has one answer, and none outlives the process. */
import { fork, type ChildProcess } from 'node:child_process';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Clock } from '../../../core/clock.ts';
import { errorOf } from '../../../core/error-fault.ts';
import { messageOf, RolloutError } from '../../../core/errors.ts';
import { LinkedAbort, never } from '../../../core/linked-abort.ts';
import type { Logger } from '../../../core/logger.ts';
import type { RouteActivity } from '../../../wire/rollout/route-activity.ts';
import type {
  EndedCall,
  FromWorker,
  QuestionName,
  ToWorker,
  WorkerAnswers,
  WorkerQuestion,
  WorkerTask,
} from './worker-messages.ts';

/** The same file where sources are compiled and where they are not. */
const entry = new URL(`./gateway-worker${path.extname(import.meta.filename)}`, import.meta.url);
/** A process that has not answered a question by then is as good as dead to whoever asked. */
const answerMs = 5_000;
/** One that has its task and does not say what became of it is stuck: on a loaded machine a start may take many seconds. */
export const makeMs = 60_000;

export interface WorkerProcessParts {
  readonly clock: Clock;
  readonly logger: Logger;
  /** `running`: how many there are still. */
  readonly onCalls: (ended: readonly EndedCall[], running: number) => void;
  /** Of the server as a whole. */
  readonly health: () => Readonly<Record<string, unknown>>;
  /** Before it does anything. */
  readonly note: () => Promise<void>;
}

export interface AskOptions {
  /** null = for ever. */
  readonly ms?: number | null;
  readonly signal?: AbortSignal;
}

export class WorkerProcess {
  /** Where it listens; LISTEN_REFUSED, or what else kept it from that. */
  readonly url: Promise<string>;
  /** How it ended. */
  readonly exited: Promise<string>;
  readonly #child: ChildProcess;
  readonly #parts: WorkerProcessParts;
  readonly #answers = new Map<number, PromiseWithResolvers<WorkerAnswers[QuestionName]>>();
  readonly #made = Promise.withResolvers<string>();
  readonly #exited = Promise.withResolvers<string>();
  #activities = new Map<string, PromiseWithResolvers<RouteActivity | null>>();
  /** What waits behind its task; null = that has gone over. */
  #early: ToWorker[] | null = [];
  #lastNumber = 0;
  #crash: string | null = null;
  #hasExited = false;

  constructor(parts: WorkerProcessParts) {
    this.#parts = parts;
    this.#child = fork(fileURLToPath(entry), [], {
      ...{ serialization: 'advanced', execArgv: [] },
      // What it prints is for people: the server's own output may be read by a program.
      stdio: ['ignore', 2, 2, 'ipc'],
    });
    this.url = this.#made.promise;
    this.exited = this.#exited.promise;
    this.url.catch(() => undefined);
    const child = this.#child;
    child.on('message', (message) => this.#hear(message as FromWorker)); // `gateway-worker.ts` says nothing else
    child.on('error', (error) => {
      this.#crash = messageOf(error);
      if (child.pid === undefined) this.#exit('it was not started');
    });
    child.on('exit', (code, signal) => {
      const how = signal === null ? `it ended with code ${code}` : `it was ended by ${signal}`;
      // Its last words may still be on their way.
      if (child.connected) child.once('disconnect', () => this.#exit(how));
      else this.#exit(how);
    });
  }

  /** What it is to do; called once. */
  begin(task: WorkerTask): void {
    void this.#make(task);
  }

  get hasExited(): boolean {
    return this.#hasExited;
  }

  get pid(): number | null {
    return this.#child.pid ?? null;
  }

  /** GATEWAY_WORKER_LOST when it has ended, or does not answer for `ms`. What `signal` ends is answered all the same. */
  async ask<Name extends QuestionName>(
    question: WorkerQuestion<Name>,
    { ms = answerMs, signal = never }: AskOptions = {},
  ): Promise<WorkerAnswers[Name]> {
    if (this.#hasExited) throw workerLost('it has ended');
    this.#lastNumber += 1;
    const number = this.#lastNumber;
    const waiting = Promise.withResolvers<WorkerAnswers[QuestionName]>();
    this.#answers.set(number, waiting);
    const giveUp = (): void => this.#send({ kind: 'give up', number });
    signal.addEventListener('abort', giveUp, { once: true });
    using late = new LinkedAbort([]);
    if (ms !== null)
      this.#parts.clock.sleep(ms, late.signal).then(
        () => waiting.reject(workerLost('it does not answer')),
        () => undefined, // it did
      );
    try {
      // The compiler does not see that one of them is one of all.
      this.#send({ kind: 'question', number, question: question as WorkerQuestion });
      if (signal.aborted) giveUp();
      return (await waiting.promise) as WorkerAnswers[Name]; // `number` is of this question
    } finally {
      late.abort(new Error('it is answered'));
      signal.removeEventListener('abort', giveUp);
      this.#answers.delete(number);
    }
  }

  /** All that are asked for in one moment are one question. null = nothing is known. Never rejects. */
  async activity(rolloutId: string): Promise<RouteActivity | null> {
    const asked = this.#activities.get(rolloutId);
    if (asked !== undefined) return await asked.promise;
    const waiting = Promise.withResolvers<RouteActivity | null>();
    this.#activities.set(rolloutId, waiting);
    if (this.#activities.size === 1) setImmediate(() => void this.#askActivities());
    return await waiting.promise;
  }

  /** SIGKILL is what a process cannot be too busy for. Idempotent. */
  async end(): Promise<void> {
    this.#child.kill('SIGKILL');
    await this.#exited.promise;
  }

  async #make(task: WorkerTask): Promise<void> {
    try {
      await this.#parts.note();
      const early = this.#early ?? [];
      this.#early = null;
      this.#send({ kind: 'make', task });
      for (const message of early) this.#send(message);
      await this.#isMadeInTime();
    } catch (error) {
      this.#made.reject(error);
    }
  }

  async #isMadeInTime(): Promise<void> {
    using made = new LinkedAbort([]);
    const over = (): void => made.abort(new Error('it is decided'));
    void this.#made.promise.then(over, over);
    await this.#parts.clock.sleep(makeMs, made.signal).then(
      () => this.#made.reject(workerLost(`it does not serve after ${makeMs / 1_000} s`)),
      () => undefined, // it does, or never will
    );
  }

  async #askActivities(): Promise<void> {
    const asked = this.#activities;
    this.#activities = new Map();
    const rolloutIds = [...asked.keys()];
    const told = await this.ask({ name: 'activity', rolloutIds }).catch(() => []);
    for (const [index, { resolve }] of [...asked.values()].entries()) resolve(told[index] ?? null);
  }

  #send(message: ToWorker): void {
    // Before its task a process understands nothing.
    if (this.#early !== null) this.#early.push(message);
    // One that has ended says so by its exit.
    else this.#child.send(message, () => undefined);
  }

  #hear(message: FromWorker): void {
    switch (message.kind) {
      case 'made':
        this.#made.resolve(message.url);
        break;
      case 'failed':
        this.#made.reject(errorOf(message.fault));
        break;
      case 'answer':
        this.#answers.get(message.number)?.resolve(message.value);
        break;
      case 'refusal':
        this.#answers.get(message.number)?.reject(errorOf(message.fault));
        break;
      case 'calls':
        this.#parts.onCalls(message.ended, message.running);
        break;
      case 'health': {
        const { number } = message;
        this.#send({ kind: 'health', number, document: this.#parts.health() });
        break;
      }
      case 'crashed':
        this.#crash = message.why;
        break;
      case 'log':
        this.#parts.logger.log(message.level, message.message, message.fields);
    }
  }

  #exit(how: string): void {
    this.#hasExited = true;
    const why = this.#crash ?? how;
    this.#made.reject(workerLost(why));
    for (const { reject } of this.#answers.values()) reject(workerLost('it has ended'));
    this.#exited.resolve(why);
  }
}

export function workerLost(why: string): RolloutError {
  return new RolloutError('GATEWAY_WORKER_LOST', `a process of the gateway is lost: ${why}`, {
    phase: 'model-call',
    remedy: 'Try again: another process takes its place. The log says why it ended.',
  });
}
