/** Ends what engines work on, again and again until they say that nothing is left: an agent that is still alive asks a moment later. */
import { messageOf } from '../../core/errors.ts';
import { LinkedAbort } from '../../core/linked-abort.ts';
import type { CollectorParts } from '../collector-parts.ts';
import type { EngineAbort } from './abort-receipt.ts';
import type { FleetEngine } from './engine-fleet.ts';

interface Known {
  readonly engine: FleetEngine;
  passes: number;
  load: number | null;
  /** The first one; an engine that has one is left alone. */
  problem: string | null;
}

type PassParts = Pick<CollectorParts, 'fleet' | 'options' | 'clock'>;

export class EnginePasses {
  readonly #parts: PassParts;
  #engines: readonly Known[] = [];
  #discoveryProblem: string | null = null;

  constructor(parts: PassParts) {
    this.#parts = parts;
  }

  get discoveryProblem(): string | null {
    return this.#discoveryProblem;
  }

  get receipts(): readonly EngineAbort[] {
    return this.#engines.map(({ engine, passes, load, problem }) => ({
      ...{ url: engine.url, passes, load, problem },
    }));
  }

  /** No engine is known to have anything left, or to have failed. */
  get isIdle(): boolean {
    return (
      this.#discoveryProblem === null &&
      this.#engines.every(({ load, problem }) => problem === null && (load ?? 0) === 0)
    );
  }

  /** Finds the engines and ends what they have, at all of them at once. */
  async first(): Promise<void> {
    const { fleet } = this.#parts;
    if (fleet === null) return;
    try {
      const engines = await this.#within((signal) => fleet.discover(signal));
      this.#engines = engines.map((engine) => ({ engine, passes: 0, load: null, problem: null }));
    } catch (error) {
      this.#discoveryProblem = messageOf(error);
    }
    await Promise.all(this.#engines.map((known) => this.#pass(known)));
  }

  /** Until every engine that answers has nothing left, within the bounds. */
  async untilIdle(): Promise<void> {
    const { clock, options } = this.#parts;
    const { passes, passesMs, pauseMs } = options.abort;
    const until = clock.monotonicMs() + passesMs;
    for (let pass = 0; ; pass += 1) {
      await Promise.all(this.#answering.map((known) => this.#ask(known)));
      const busy = this.#answering.filter(({ load }) => load !== null && load > 0);
      if (busy.length === 0 || pass >= passes || clock.monotonicMs() >= until) return;
      await Promise.all(busy.map((known) => this.#pass(known)));
      await this.#within((signal) => clock.sleep(pauseMs, signal)).catch(() => undefined);
    }
  }

  get #answering(): readonly Known[] {
    return this.#engines.filter(({ problem }) => problem === null);
  }

  async #pass(known: Known): Promise<void> {
    const { engine } = known;
    if (!engine.capabilities.abortAll) {
      known.problem = 'this kind of engine cannot be told to end everything';
      return;
    }
    known.passes += 1;
    await this.#try(known, (signal) => engine.abortAll(signal));
  }

  async #ask(known: Known): Promise<void> {
    const { engine } = known;
    if (!engine.capabilities.load) return;
    await this.#try(known, async (signal) => {
      const { runningRequests, waitingRequests } = await engine.load(signal);
      known.load = runningRequests + waitingRequests;
    });
  }

  async #try(known: Known, work: (signal: AbortSignal) => Promise<void>): Promise<void> {
    try {
      await this.#within(work);
    } catch (error) {
      known.problem = messageOf(error);
    }
  }

  async #within<T>(work: (signal: AbortSignal) => Promise<T>): Promise<T> {
    const { engineMs } = this.#parts.options.abort;
    const reason = (): Error => new Error(`no answer within ${engineMs} ms`);
    using link = new LinkedAbort([], { ms: engineMs, reason });
    const late = Promise.withResolvers<never>();
    late.promise.catch(() => undefined);
    link.signal.addEventListener('abort', () => late.reject(reason()), { once: true });
    return await Promise.race([work(link.signal), late.promise]);
  }
}
