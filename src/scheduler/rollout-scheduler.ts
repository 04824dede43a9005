import { LinkedAbort, never } from '../core/linked-abort.ts';
import type { Delivery, RolloutQuery } from '../store/rollout-store.ts';
import type { CancelSelector } from '../wire/rollout/cancel.ts';
import { Admission, admissionLimits } from './admission.ts';
import { noteCallbackEnds } from './callback-events.ts';
import { cancelRollouts } from './cancellation.ts';
import { Dispatcher } from './dispatcher.ts';
import { FailurePause } from './failure-pause.ts';
import { keepHouse } from './housekeeping.ts';
import { KvCap } from './kv-cap.ts';
import { Ledger } from './ledger.ts';
import { MemoryQueue } from './memory/memory-queue.ts';
import { endByWaitLimit } from './own-ends.ts';
import { recoverRollouts } from './recovery.ts';
import { RolloutRun } from './rollout-run.ts';
import type { AdmissionView, Caller, RolloutService, RolloutView } from './rollout-service.ts';
import { letGo, type SchedulerCore } from './scheduler-core.ts';
import type { SchedulerOptions, SchedulerParts } from './scheduler-parts.ts';
import { abortRest, drain, soon } from './shutdown.ts';
import { submitRollout } from './submission.ts';
import { maySee, Tenants } from './tenants.ts';
import { admissionView, rolloutView } from './views.ts';
import { WaitLimits } from './wait-limits.ts';

export interface StopOptions {
  /** How long running rollouts may go on. */
  readonly drainMs: number;
  /** Ends the draining early. */
  readonly hurry: AbortSignal;
  /** How long ending what is left may take. */
  readonly abortMs: number;
  /** Gives everything up at once; the next start finds it in the store. */
  readonly force: AbortSignal;
}

/** Takes rollouts in, runs them in fair order and sees every one through to its end. */
export class RolloutScheduler implements RolloutService {
  readonly #core: SchedulerCore;
  readonly #kvCap: KvCap | null;
  readonly #stopping = new LinkedAbort([]);
  /** The timers: they outlive `stopping`, because what is left may still need them. */
  readonly #life = new LinkedAbort([]);
  readonly #work = new Set<Promise<void>>();
  #hasStarted = false;
  /** What an earlier life left is known, or will not be. */
  readonly #recovered = Promise.withResolvers<undefined>();
  #ignoreCallbackEnds: (() => void) | null = null;
  #stopped: Promise<void> | null = null;

  /** CONFIG_INVALID when the limits are no limits. Borrows its parts: whoever made them closes them, after `stop`. */
  constructor(options: SchedulerOptions, parts: SchedulerParts) {
    const { clock, logger, engineLoad } = parts;
    const limits = admissionLimits(options.limits);
    const tenants = new Tenants(options.tenants);
    const weightOf = (tenant: string): number => tenants.weight(tenant);
    const stopping = this.#stopping.signal;
    const fairly = { weightOf, monotonicMs: () => clock.monotonicMs() };
    const queue = parts.hosts?.openQueue(fairly) ?? new MemoryQueue(fairly);
    parts.hosts?.onPlaces(() => dispatcher.wake());
    const live: SchedulerCore['live'] = new Map();
    const pause = new FailurePause(options.pause, {
      clock,
      onChange: () => dispatcher.wake(),
      signal: this.#life.signal,
    });
    const ledger = new Ledger({ ...parts, giveUp: this.#life.signal });
    const dispatcher = new Dispatcher({
      ...{ queue, live, pause, stopping, clock, logger },
      cap: () => this.#cap,
      run: (rollout) => this.#run(rollout),
    });
    const waitLimits = new WaitLimits(clock, (id) => endByWaitLimit(id, this.#core));
    this.#core = {
      ...{ parts, options, limits, tenants, queue, live, pause, ledger, dispatcher },
      ...{ waitLimits, stopping, accepting: new Map() },
      admission: new Admission(limits, { weightOf, clock }),
      background: (work) => this.#count(work),
    };
    this.#kvCap =
      engineLoad === null
        ? null
        : new KvCap(
            { ...options.kv, max: limits.maxConcurrent },
            {
              load: engineLoad,
              running: () => dispatcher.running,
              onGrown: () => dispatcher.wake(),
              ...{ clock, logger },
            },
          );
  }

  /** Takes up what an earlier life left, then runs rollouts. Submissions before that are refused as `stopping`. Once. */
  async start(): Promise<{ readonly recovered: number }> {
    const { dispatcher, parts, options } = this.#core;
    this.#ignoreCallbackEnds = noteCallbackEnds(this.#core);
    const recovered = await recoverRollouts(this.#core).finally(() =>
      this.#recovered.resolve(undefined),
    );
    const life = this.#life.signal;
    this.#count(keepHouse(options.retention, parts, life));
    this.#count(dispatcher.keepLeases(life));
    if (this.#kvCap !== null) this.#count(this.#kvCap.follow(life));
    this.#hasStarted = true;
    dispatcher.open();
    return { recovered };
  }

  /**
   * Refuses, drains, ends what is left: rollouts whose agent has not begun stay queued in the store, others end as a failure whose callbacks are in the
   * outbox. Idempotent: later calls share the first one's end.
   */
  stop(options: StopOptions): Promise<void> {
    this.#stopped ??= this.#stop(options);
    return this.#stopped;
  }

  /**
   * Resolves when what it does beside the rollouts is done, or `ms` are over: callbacks whose last words came while they were closed are in the archive.
   * After `stop`, when the callbacks are closed and the store is not.
   */
  async settled(ms: number): Promise<void> {
    const allDone = async (): Promise<void> => {
      while (this.#work.size > 0) await Promise.allSettled(this.#work);
    };
    await soon(allDone(), { ms, hurry: never }, this.#core);
  }

  async submit(
    submission: Parameters<RolloutService['submit']>[0],
  ): ReturnType<RolloutService['submit']> {
    if (!this.#hasStarted) return { kind: 'stopping', retryAfterS: 1 };
    return await submitRollout(submission, this.#core);
  }

  async status(id: string, caller: Caller): ReturnType<RolloutService['status']> {
    const rollout = await this.#core.parts.store.rollout(id);
    if (rollout === null || !maySee(caller, rollout.tenant))
      return { rolloutId: id, status: 'unknown', reward: null, errMessage: null };
    const { state, outcome } = rollout;
    return {
      ...{ rolloutId: id, status: state },
      reward: outcome?.reward ?? null,
      errMessage: outcome?.errMessage ?? null,
      ...(outcome?.samples !== undefined && { samples: outcome.samples }),
    };
  }

  async cancel(selector: CancelSelector, caller: Caller): ReturnType<RolloutService['cancel']> {
    await this.#recovered.promise;
    return await cancelRollouts(selector, caller, this.#core);
  }

  async inspect(id: string, caller: Caller): Promise<RolloutView | null> {
    const { store } = this.#core.parts;
    const rollout = await store.rollout(id);
    if (rollout === null || !maySee(caller, rollout.tenant)) return null;
    const [deliveries, receipts] = await Promise.all([store.deliveries(id), store.receipts(id)]);
    return await rolloutView(rollout, { deliveries, receipts }, this.#core);
  }

  async list(query: RolloutQuery, caller: Caller): Promise<readonly RolloutView[]> {
    if (query.tenant !== undefined && !maySee(caller, query.tenant)) return [];
    const tenant = caller.tenant ?? query.tenant;
    const rollouts = await this.#core.parts.store.list({
      ...query,
      ...(tenant !== undefined && { tenant }),
    });
    return await Promise.all(
      rollouts.map((rollout) => rolloutView(rollout, { deliveries: [], receipts: [] }, this.#core)),
    );
  }

  async events(
    options: Parameters<RolloutService['events']>[0],
    { tenant }: Caller,
  ): ReturnType<RolloutService['events']> {
    return await this.#core.parts.store.events({ ...options, ...(tenant !== null && { tenant }) });
  }

  onEvents(listener: () => void): () => void {
    return this.#core.parts.store.onEvents(listener);
  }

  admission(): AdmissionView {
    return admissionView(this.#cap, this.#core);
  }

  backendHealth(): Readonly<Record<string, unknown>> {
    return this.#core.parts.backend.health();
  }

  async deadLetters(
    options: { readonly limit: number; readonly afterSeq: number },
    { tenant }: Caller,
  ): Promise<readonly Delivery[]> {
    return await this.#core.parts.store.deadLetters({
      ...options,
      ...(tenant !== null && { tenant }),
    });
  }

  async replay(key: string, { tenant }: Caller): Promise<Delivery | null> {
    const { store, callbacks } = this.#core.parts;
    const delivery = await store.replay(key, tenant ?? undefined);
    if (delivery !== null) callbacks.enqueue([delivery]);
    return delivery;
  }

  get #cap(): number {
    const { maxConcurrent } = this.#core.limits;
    const places = this.#core.parts.hosts?.places() ?? maxConcurrent;
    return Math.min(maxConcurrent, places, this.#kvCap?.value ?? maxConcurrent);
  }

  async #run(rollout: Parameters<typeof letGo>[0]): Promise<'done' | 'again'> {
    rollout.hold();
    const { waitLimits, stopping } = this.#core;
    waitLimits.clear(rollout.id);
    const run = new RolloutRun(rollout, this.#core);
    if ((await run.untilFree()) === 'again') {
      if (!stopping.aborted) waitLimits.set(rollout.id, rollout.acceptedMs + rollout.waitMs);
      letGo(rollout, this.#core);
      return 'again';
    }
    this.#count(run.untilSettled().then(() => letGo(rollout, this.#core)));
    return 'done';
  }

  async #stop({ drainMs, hurry, abortMs, force }: StopOptions): Promise<void> {
    const core = this.#core;
    this.#stopping.abort(new Error('the scheduler stops'));
    this.#recovered.resolve(undefined);
    core.waitLimits.close();
    using hurried = new LinkedAbort([hurry, force]);
    await drain({ ms: drainMs, hurry: hurried.signal }, core);
    await abortRest({ ms: abortMs, hurry: force }, core);
    this.#ignoreCallbackEnds?.();
    this.#life.abort(new Error('the scheduler has stopped'));
  }

  #count(work: Promise<void>): void {
    this.#work.add(work);
    void work.finally(() => this.#work.delete(work));
  }
}
