import { Limiter } from '../../core/limiter.ts';
import type { LocalOptions } from './local-options.ts';
import { RolloutWorker } from './rollout-worker.ts';

/** Threads for rollouts: one rollout per thread at a time; a thread whose rollout ended well serves another. */
export class WorkerPool {
  readonly #options: LocalOptions;
  readonly #places: Limiter;
  readonly #idle: RolloutWorker[] = [];
  readonly #live = new Set<RolloutWorker>();
  #isClosed = false;

  constructor(options: LocalOptions, maxThreads: number) {
    this.#options = options;
    this.#places = new Limiter(maxThreads);
  }

  get running(): number {
    return this.#places.active;
  }

  get waiting(): number {
    return this.#places.waiting;
  }

  /** Loads the modules in a first thread and keeps it. WORKFLOW_INVALID. */
  async warm(): Promise<void> {
    const worker = this.#make();
    try {
      await worker.ready;
    } catch (error) {
      await worker.terminate();
      throw error;
    }
    this.#idle.push(worker);
  }

  /** `work` says whether the thread can serve another rollout; otherwise it is ended before the place is free. */
  async withWorker<T>(
    signal: AbortSignal,
    work: (worker: RolloutWorker) => Promise<{ readonly value: T; readonly isIdle: boolean }>,
  ): Promise<T> {
    return await this.#places.run(signal, async () => {
      const worker = this.#take();
      let isKept = false;
      try {
        const { value, isIdle } = await work(worker);
        isKept = isIdle;
        return value;
      } finally {
        worker.onPrint = null;
        if (isKept && !worker.isGone) this.#idle.push(worker);
        else await this.#replace(worker);
      }
    });
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    this.#idle.length = 0;
    await Promise.all([...this.#live].map((worker) => worker.terminate()));
  }

  /** The next rollout does not wait for a thread to start. */
  async #replace(worker: RolloutWorker): Promise<void> {
    await worker.terminate();
    if (!this.#isClosed) this.#idle.push(this.#make());
  }

  #take(): RolloutWorker {
    for (let worker = this.#idle.pop(); worker; worker = this.#idle.pop())
      if (!worker.isGone) return worker;
    return this.#make();
  }

  #make(): RolloutWorker {
    const worker = new RolloutWorker(this.#options, () => this.#live.delete(worker));
    this.#live.add(worker);
    return worker;
  }
}
