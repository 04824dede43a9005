import { availableParallelism } from 'node:os';
import { Limiter } from '../../core/limiter.ts';
import { LinkedAbort, never } from '../../core/linked-abort.ts';
import type { RolloutWorker, WorkerKind } from './rollout-worker.ts';

/** A worker that takes longer lets the next one start: its modules wait for something, and do not compute. */
const startTurnMs = 2_000;

/** Workers for rollouts: one rollout per worker at a time; a worker whose rollout ended well serves another. */
export class WorkerPool {
  readonly #kind: WorkerKind;
  readonly #places: Limiter;
  /** Starting a worker loads the user's modules: many at once would keep the server from its own work. */
  readonly #starts = new Limiter(Math.max(1, availableParallelism() - 1));
  readonly #idle: RolloutWorker[] = [];
  readonly #live = new Set<RolloutWorker>();
  #isClosed = false;

  constructor(kind: WorkerKind, maxWorkers: number) {
    this.#kind = kind;
    this.#places = new Limiter(maxWorkers);
  }

  /** Of one worker, for people. */
  get noun(): string {
    return this.#kind.noun;
  }

  get running(): number {
    return this.#places.active;
  }

  get waiting(): number {
    return this.#places.waiting;
  }

  /** Loads the modules in a first worker and keeps it. WORKFLOW_INVALID, WORKFLOW_PACKAGE_MISSING, RUNNER_FAILED. */
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

  /** `work` says whether the worker can serve another rollout; otherwise it is ended before the place is free. */
  async withWorker<T>(
    signal: AbortSignal,
    work: (worker: RolloutWorker) => Promise<{ readonly value: T; readonly isIdle: boolean }>,
  ): Promise<T> {
    return await this.#places.run(signal, async () => {
      const worker = await this.#take(signal);
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

  /** The next rollout does not wait for a worker to start. */
  async #replace(worker: RolloutWorker): Promise<void> {
    await worker.terminate();
    void this.#starts.run(never, async () => {
      if (this.#isClosed) return;
      const next = this.#make();
      this.#idle.push(next);
      await startedOrSlow(next, never);
    });
  }

  async #take(signal: AbortSignal): Promise<RolloutWorker> {
    const idle = this.#idleOne();
    if (idle !== null) return idle;
    return await this.#starts.run(signal, async () => {
      // The replacement of another one may have been made meanwhile.
      const waiting = this.#idleOne();
      if (waiting !== null) return waiting;
      const worker = this.#make();
      await startedOrSlow(worker, signal);
      return worker;
    });
  }

  #idleOne(): RolloutWorker | null {
    for (let worker = this.#idle.pop(); worker; worker = this.#idle.pop())
      if (!worker.isGone) return worker;
    return null;
  }

  #make(): RolloutWorker {
    const worker: RolloutWorker = this.#kind.make(() => this.#live.delete(worker));
    this.#live.add(worker);
    return worker;
  }
}

/** Whether it started, and why not, is for whoever works with it. */
async function startedOrSlow(worker: RolloutWorker, signal: AbortSignal): Promise<void> {
  using turn = new LinkedAbort([signal], { ms: startTurnMs, reason: () => null });
  const over = Promise.withResolvers<undefined>();
  if (turn.signal.aborted) return;
  turn.signal.addEventListener('abort', () => over.resolve(undefined), { once: true });
  await Promise.race([worker.ready.catch(() => undefined), over.promise]);
}
