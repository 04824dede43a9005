import path from 'node:path';
import { Worker } from 'node:worker_threads';
import type { Clock } from '../../core/clock.ts';
import { errorOf, type ErrorFault } from '../../core/error-fault.ts';
import { messageOf, RolloutError } from '../../core/errors.ts';
import { LinkedAbort } from '../../core/linked-abort.ts';
import { noSamples } from '../../wire/rollout/rollout-samples.ts';
import type { MadeSamples, SampleMaker, SamplesTask } from './sample-maker.ts';

export type Work =
  | { readonly kind: 'make'; readonly task: SamplesTask }
  | { readonly kind: 'payload'; readonly file: string; readonly layers: number | null };

export interface FromSamples {
  readonly made?: MadeSamples;
  readonly payload?: Uint8Array;
  readonly fault?: ErrorFault;
}

/** The same file where sources are compiled and where they are not. */
const entry = new URL(`./samples-worker${path.extname(import.meta.filename)}`, import.meta.url);

/** Ten thousand calls take seconds: what takes this long, such as a picker that does not come back, never ends. */
const limitMs = 10 * 60_000;

/**
 * This side of the thread that makes samples: of one rollout after the other, since each may take as much memory as its calls. It is started when the first are
 * wanted, and anew when it has died of one: it has no other then, so only that rollout pays for it.
 */
export class SamplesThread implements SampleMaker {
  readonly #clock: Clock;
  #last: Promise<unknown> = Promise.resolve();
  #asked: PromiseWithResolvers<FromSamples> | null = null;
  #worker: Worker | null = null;
  #isClosed = false;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  async make(task: SamplesTask): Promise<MadeSamples> {
    try {
      const { made } = await this.#ask({ kind: 'make', task });
      if (made !== undefined) return made;
      throw new Error('nothing was made');
    } catch (error) {
      const why = `the samples cannot be put together: ${messageOf(error)}`;
      return { samples: noSamples('not-made', why), file: null };
    }
  }

  async milesPayload(file: string, layers: number | null): Promise<Uint8Array> {
    const { payload } = await this.#ask({ kind: 'payload', file, layers });
    return payload ?? new Uint8Array();
  }

  /** What is under way is broken off. Idempotent. */
  async close(): Promise<void> {
    this.#isClosed = true;
    await this.#worker?.terminate();
  }

  async #ask(work: Work): Promise<FromSamples> {
    const turn = this.#last.then(() => this.#work(work));
    this.#last = turn.catch(() => undefined);
    const answer = await turn;
    if (answer.fault !== undefined) throw errorOf(answer.fault);
    return answer;
  }

  async #work(work: Work): Promise<FromSamples> {
    if (this.#isClosed) throw gone('it is closed');
    const worker = (this.#worker ??= this.#start());
    const asked = Promise.withResolvers<FromSamples>();
    this.#asked = asked;
    const link = new LinkedAbort([]);
    this.#clock.sleep(limitMs, link.signal).then(
      () => {
        this.#ended(worker, `it took longer than ${limitMs / 60_000} minutes`);
        return worker.terminate();
      },
      () => undefined,
    );
    worker.postMessage(work);
    try {
      return await asked.promise;
    } finally {
      link.abort(new Error('it has answered'));
    }
  }

  #start(): Worker {
    const worker = new Worker(entry, { name: 'samples' });
    let why = 'it has ended';
    worker.on('message', (answer: FromSamples) => {
      if (this.#worker === worker) this.#asked?.resolve(answer);
    });
    worker.on('error', (error) => (why = messageOf(error)));
    worker.on('exit', () => this.#ended(worker, why));
    return worker;
  }

  /** The next one gets another. */
  #ended(worker: Worker, why: string): void {
    if (this.#worker !== worker) return;
    this.#worker = null;
    this.#asked?.reject(gone(why));
  }
}

function gone(why: string): RolloutError {
  return new RolloutError('INTERNAL', `the thread that makes samples is gone: ${why}`, {
    phase: 'collect',
  });
}
