/** A controller that keeps a number of rollouts under way at a server that dies now and then. */
import { setTimeout as delay } from 'node:timers/promises';
import type { ListenerFault, ReceivedCallback } from '../../src/callbacks/callback-listener.ts';
import { RolloutController } from '../../src/callbacks/rollout-controller.ts';
import type { RolloutEvidence, SeenCallback } from './rollout-evidence.ts';
import { unusedModelUrl } from './unused-model.ts';

export interface LiveLoadOptions {
  readonly serverUrl: () => string;
  readonly live: number;
  readonly random: () => number;
  /** What ids begin with; default: `r`. */
  readonly prefix?: string;
  /** The server does not deliver what an earlier life left, so that nobody waits for it. */
  readonly forgetsPending?: boolean;
  /** What the next rollout asks for, and what its reward must be. */
  readonly plan: (random: () => number, id: string) => PlannedWork;
  readonly onReceived?: (callback: ReceivedCallback) => void;
}

export interface PlannedWork {
  readonly metadata: Readonly<Record<string, unknown>>;
  readonly reward: number;
}

interface Planned {
  readonly id: string;
  readonly reward: number;
  readonly isCancelled: boolean;
  readonly aborted: AbortController;
  commits: number;
  callbacksAtCancel: number;
  readonly callbacks: SeenCallback[];
  end: RolloutEvidence['end'];
}

/** Of a hundred callbacks: that many are refused for now, and of that many the acknowledgement is lost. */
const refusedShare = 0.04;
const lostShare = 0.04;
const cancelledShare = 1 / 8;
/** What the server sent before it answered a cancellation may be read here after the answer; what it sends again comes later. */
const onTheWayMs = 200;
/** Deaths of the server while it sends a callback, one after the other. */
const callbackMoments = [
  { channel: 'grader', isTaken: false },
  { channel: 'completion', isTaken: true },
  { channel: 'grader', isTaken: true },
  { channel: 'completion', isTaken: false },
] as const;

export class LiveLoad implements AsyncDisposable {
  readonly #options: LiveLoadOptions;
  readonly #controller: RolloutController;
  readonly #rollouts = new Map<string, Planned>();
  readonly #open = new Set<string>();
  readonly #settled = new Set<string>();
  readonly #workers: Promise<void>[] = [];
  #isStopping = false;
  #callbacksUntil: { left: number; readonly act: () => void } | null = null;
  #killsAtCallback = 0;
  #cancelling = 0;
  #onCancel: (() => void) | null = null;

  constructor(options: LiveLoadOptions) {
    this.#options = options;
    this.#controller = new RolloutController({
      serverUrl: options.serverUrl,
      resubmits: true,
      commit: async ({ rolloutId }) => {
        this.#rollouts.get(rolloutId)!.commits += 1;
        return undefined;
      },
      onReceived: (callback) => this.#received(callback),
    });
  }

  get live(): number {
    return this.#open.size;
  }

  /** Rollouts so far, those under way included. */
  get count(): number {
    return this.#rollouts.size;
  }

  async start(): Promise<void> {
    await this.#controller.start();
    for (let worker = 0; worker < this.#options.live; worker += 1)
      this.#workers.push(this.#work(worker));
  }

  /** Resolves when the planned number of rollouts is under way. */
  async isFull(): Promise<void> {
    while (this.live < this.#options.live) await delay(5);
  }

  /** Acts when so many more callbacks have come, and before another one is answered; every other time it was taken all the same. */
  async atCallback(count: number, act: () => void): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<undefined>();
    this.#callbacksUntil = {
      left: count,
      act: () => {
        act();
        resolve(undefined);
      },
    };
    await promise;
  }

  /** Acts when a cancellation has been sent and not been answered. */
  async atCancel(act: () => void): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<undefined>();
    this.#onCancel = () => {
      act();
      resolve(undefined);
    };
    await promise;
  }

  /** Submits nothing more and waits until the server has nothing more to do and has said so, but no longer than `limitMs`. */
  async finish(limitMs: number): Promise<readonly RolloutEvidence[]> {
    this.#isStopping = true;
    const until = performance.now() + limitMs;
    while (performance.now() < until && !(await this.#isOver())) await delay(50);
    // A cancellation is over here a little after it is over there.
    while (performance.now() < until && this.#cancelling > 0) await delay(50);
    return await Promise.all([...this.#rollouts.values()].map((plan) => this.#evidenceOf(plan)));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#isStopping = true;
    for (const id of this.#open) this.#rollouts.get(id)!.aborted.abort(new Error('over'));
    await Promise.allSettled(this.#workers);
    await this.#controller.close();
  }

  async #work(worker: number): Promise<void> {
    const { random } = this.#options;
    for (let turn = 0; !this.#isStopping; turn += 1) {
      const id = `${this.#options.prefix ?? 'r'}-${worker}-${turn}`;
      const { metadata, reward } = this.#options.plan(random, id);
      const plan: Planned = {
        ...{ id, reward },
        isCancelled: random() < cancelledShare,
        aborted: new AbortController(),
        ...{ commits: 0, callbacksAtCancel: 0, callbacks: [], end: 'open' },
      };
      this.#rollouts.set(plan.id, plan);
      this.#open.add(plan.id);
      const cancelAfterMs = random() * 500;
      await Promise.all([
        this.#run(plan, metadata),
        plan.isCancelled ? this.#cancel(plan, cancelAfterMs) : null,
      ]);
      this.#open.delete(plan.id);
    }
  }

  async #run(plan: Planned, metadata: PlannedWork['metadata']): Promise<void> {
    try {
      await this.#controller.run(
        {
          ...{ rollout_id: plan.id, initial_messages: [], metadata },
          chat_completions_url: unusedModelUrl,
        },
        plan.aborted.signal,
      );
      plan.end = 'callback';
    } catch (error) {
      // It was cancelled before it came, or while it ran.
      if (!plan.isCancelled && !plan.aborted.signal.aborted) throw error;
    }
  }

  /** Asks until the server has said what became of it. */
  async #cancel(plan: Planned, afterMs: number): Promise<void> {
    this.#cancelling += 1;
    try {
      await delay(afterMs);
      await this.#askUntilEnded(plan);
    } finally {
      this.#cancelling -= 1;
    }
  }

  async #askUntilEnded(plan: Planned): Promise<void> {
    while (!plan.aborted.signal.aborted && plan.end === 'open') {
      try {
        const answer = this.#controller.cancel([plan.id]);
        this.#onCancel?.();
        this.#onCancel = null;
        const isCancelled = ((await answer)[plan.id] ?? '').startsWith('cancelled_');
        const status = isCancelled ? 'cancelled' : (await this.#status(plan.id)).status;
        if (status === 'success' || status === 'failure') return;
        if (status !== 'cancelled') continue;
        await delay(onTheWayMs);
        plan.callbacksAtCancel = plan.callbacks.length;
        plan.end = 'cancelled';
        plan.aborted.abort(new Error('cancelled'));
      } catch {
        await delay(20); // the server is dead at the moment
      }
    }
  }

  #received(callback: ReceivedCallback): ListenerFault | undefined {
    this.#options.onReceived?.(callback);
    const { rolloutId, channel, key, text } = callback;
    const plan = this.#rollouts.get(rolloutId);
    if (plan === undefined) return { status: 404 };
    const fault = this.#fault(plan, channel);
    const isTaken = fault === undefined || fault.isTaken === true;
    plan.callbacks.push({ channel, key, text, isTaken });
    return fault;
  }

  #fault(plan: Planned, channel: SeenCallback['channel']): ListenerFault | undefined {
    const until = this.#callbacksUntil;
    if (until !== null) {
      until.left -= 1;
      const isFirst = plan.callbacks.every((callback) => callback.channel !== channel);
      const moment = callbackMoments[this.#killsAtCallback % callbackMoments.length];
      if (until.left < 0 && isFirst && !plan.isCancelled && channel === moment?.channel) {
        this.#callbacksUntil = null;
        until.act();
        this.#killsAtCallback += 1;
        return { status: null, isTaken: moment.isTaken };
      }
    }
    const chance = this.#options.random();
    if (chance < refusedShare) return { status: 503 };
    return chance < refusedShare + lostShare ? { status: null, isTaken: true } : undefined;
  }

  async #status(id: string): Promise<{ readonly status: string; readonly reward: number | null }> {
    return await this.#get(`/rollout/${id}/status`);
  }

  /** The documents are checked by the tests of the server. */
  async #get<Document>(path: string): Promise<Document> {
    const answer = await fetch(`${this.#options.serverUrl()}${path}`, {
      signal: AbortSignal.timeout(10_000),
    });
    return (await answer.json()) as Document;
  }

  /** The server holds no place for any rollout and has no callback to deliver: who waits now waits in vain. */
  async #isOver(): Promise<boolean> {
    const { capacity } = await this.#get<{ readonly capacity: { in_flight: number } }>('/health');
    if (capacity.in_flight > 0) return false;
    for (const id of this.#rollouts.keys()) {
      if (this.#settled.has(id)) continue;
      const { callbacks = [] } = await this.#get<{
        readonly callbacks?: readonly { readonly state: string }[];
      }>(`/api/v1/rollouts/${id}`);
      const hasPending = callbacks.some(({ state }) => state === 'pending');
      const { status } = await this.#status(id);
      const isTerminal = status === 'success' || status === 'failure' || status === 'cancelled';
      if (!isTerminal || (hasPending && this.#options.forgetsPending !== true)) return false;
      this.#settled.add(id);
    }
    return true;
  }

  async #evidenceOf(plan: Planned): Promise<RolloutEvidence> {
    const { status, reward: statusReward } = await this.#status(plan.id);
    const { id, reward, end, commits, callbacks, callbacksAtCancel } = plan;
    return { id, reward, end, commits, callbacks, callbacksAtCancel, status, statusReward };
  }
}
