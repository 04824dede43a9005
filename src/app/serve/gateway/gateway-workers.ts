/**
 * The gateway in processes of its own, so that one core is not the limit: each has a data listener, and a rollout stays on its process. What a process that dies
 * leaves is here: which rollouts were its, under which keys (their hashes), and what they had used up. It is started again on the same port, with them; calls
 * that ran are broken, and whoever asks for something of a rollout meanwhile is answered at once.
 */
import type { ServeConfig } from '../../../config/serve/read-serve-config.ts';
import type { Clock } from '../../../core/clock.ts';
import { isRolloutError, messageOf, RolloutError } from '../../../core/errors.ts';
import { LinkedAbort } from '../../../core/linked-abort.ts';
import type { Logger } from '../../../core/logger.ts';
import type { CallUse } from '../../../gateway/call-budget.ts';
import type { CallCapture } from '../../../gateway/capture/call-capture.ts';
import type {
  GatewayControl,
  RouteAbort,
  RouteRequest,
  UpstreamProbe,
} from '../../../gateway/gateway-control.ts';
import type { HeldRoute, RelayedCall } from '../../../gateway/model-gateway.ts';
import { keyHashOf } from '../../../gateway/route-keys.ts';
import type { GatewayFacts } from '../../../telemetry/facts.ts';
import type { ModelRoute } from '../../../wire/rollout/model-route.ts';
import type { RouteActivity } from '../../../wire/rollout/route-activity.ts';
import { WorkerSlot } from './worker-slot.ts';
import type { EndedCall } from './worker-messages.ts';

/** A new rollout waits no longer for a process that serves. */
const patienceMs = 10_000;

export interface GatewayWorkersOptions {
  readonly config: ServeConfig;
  readonly clock: Clock;
  readonly logger: Logger;
  /** As the processes have it; null = calls are not captured. */
  readonly capture: Pick<CallCapture, 'fileOf' | 'left' | 'forget'> | null;
  /** What `/health` of every process says. */
  readonly health: () => Readonly<Record<string, unknown>>;
  readonly onCall: (call: RelayedCall) => void;
  /** Told before a new process does anything: those that there are. */
  readonly note: (pids: readonly number[]) => Promise<void>;
}

/** A rollout on its process. */
interface Placement {
  readonly slot: WorkerSlot;
  readonly request: RouteRequest;
  /** null = it has no key yet. */
  keyHash: string | null;
  used: CallUse;
  /** Its key is not dead. */
  isLive: boolean;
}

export class GatewayWorkers implements GatewayControl, AsyncDisposable {
  readonly #options: GatewayWorkersOptions;
  readonly #slots: readonly WorkerSlot[];
  /** Until what was captured was asked for, or forgotten. */
  readonly #placements = new Map<string, Placement>();
  #noting: Promise<void> = Promise.resolve();
  #closing: Promise<void> | null = null;

  constructor(options: GatewayWorkersOptions) {
    this.#options = options;
    const { config, clock, logger, health } = options;
    this.#slots = Array.from(
      { length: config.gateway.workers },
      (_, index) =>
        new WorkerSlot({
          ...{ config, clock, logger, health, number: index + 1 },
          held: (slot) => this.#heldBy(slot),
          note: () => this.#note(),
          onCalls: (ended) => this.#ended(ended),
        }),
    );
  }

  /** Resolves when all listen, with their addresses; rejects with the first one's reason, when none is left. */
  async start(): Promise<readonly string[]> {
    try {
      return await Promise.all(this.#slots.map((slot) => slot.start()));
    } catch (error) {
      await this.close();
      throw error;
    }
  }

  /** Rollouts that a process may still know something of. */
  get placed(): number {
    return this.#placements.size;
  }

  async register(request: RouteRequest): Promise<ModelRoute> {
    const untilMs = this.#options.clock.monotonicMs() + patienceMs;
    const tried = new Set<WorkerSlot>();
    for (;;) {
      const slot = this.#ownSlot(request.rolloutId) ?? (await this.#emptiest(untilMs, tried));
      try {
        return await this.#registerOn(slot, request);
      } catch (error) {
        tried.add(slot);
        const isOver = this.#options.clock.monotonicMs() >= untilMs;
        if (isOver || !isRolloutError(error, 'GATEWAY_WORKER_LOST')) throw error;
      }
    }
  }

  async revoke(rolloutId: string): Promise<void> {
    const placement = this.#placements.get(rolloutId);
    if (placement === undefined) return;
    placement.isLive = false;
    await placement.slot.askUnlessDead({ name: 'revoke', rolloutId }, null);
  }

  async abort(rolloutId: string): Promise<RouteAbort> {
    const placement = this.#placements.get(rolloutId);
    if (placement !== undefined) placement.isLive = false;
    // Who ran its calls is forgotten with its capture: then any of them may.
    const slots = placement === undefined ? this.#slots : [placement.slot];
    const ended = await Promise.all(
      slots.map((slot) => slot.askUnlessDead({ name: 'abort', rolloutId }, { callsEnded: 0 })),
    );
    return { callsEnded: ended.reduce((sum, { callsEnded }) => sum + callsEnded, 0) };
  }

  async captured(rolloutId: string): Promise<string | null> {
    const slot = this.#placements.get(rolloutId)?.slot;
    // However long its disk takes: of a process that is stuck the file is found when it was killed.
    const asked = { name: 'captured', rolloutId } as const;
    const file = await slot?.askUnlessDead(asked, null, { ms: null });
    this.#leave(rolloutId);
    return file ?? (await this.#options.capture?.fileOf(rolloutId)) ?? null;
  }

  async forget(rolloutId: string): Promise<void> {
    const slot = this.#placements.get(rolloutId)?.slot;
    await slot?.askUnlessDead({ name: 'forget', rolloutId }, null);
    this.#leave(rolloutId);
    await this.#options.capture?.forget(rolloutId);
  }

  async left(): Promise<readonly string[]> {
    return (await this.#options.capture?.left()) ?? [];
  }

  async activity(rolloutId: string): Promise<RouteActivity | null> {
    const placement = this.#placements.get(rolloutId);
    return placement?.isLive === true ? await placement.slot.activity(rolloutId) : null;
  }

  async probe(rolloutId: string, signal: AbortSignal): Promise<UpstreamProbe | null> {
    const placement = this.#placements.get(rolloutId);
    if (placement?.isLive !== true) return null;
    return await placement.slot.ask({ name: 'probe', rolloutId }, { signal }).catch(() => null);
  }

  facts(): readonly GatewayFacts[] {
    return this.#slots.map((slot) => slot.facts(this.#liveOn(slot)));
  }

  /** Calls under way may end, for a moment. */
  async stopListening(): Promise<void> {
    await Promise.all(
      this.#slots.map((slot) => slot.ask({ name: 'stop listening' }).catch(() => undefined)),
    );
  }

  /** Ends every call and every process. Idempotent. */
  close(): Promise<void> {
    this.#closing ??= Promise.all(this.#slots.map((slot) => slot.close())).then(() => undefined);
    return this.#closing;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  /** One after the other: they are written to one place. */
  #note(): Promise<void> {
    const note = (): Promise<void> =>
      this.#options.note(this.#slots.flatMap(({ pid }) => (pid === null ? [] : [pid])));
    this.#noting = this.#noting.then(note, note);
    return this.#noting;
  }

  async #registerOn(slot: WorkerSlot, request: RouteRequest): Promise<ModelRoute> {
    const { rolloutId } = request;
    const placement: Placement = {
      ...{ slot, request, keyHash: null, isLive: true },
      used: { requests: 0, turns: 0, tokens: 0 },
    };
    this.#placements.set(rolloutId, placement);
    try {
      const route = await slot.ask({ name: 'register', request });
      // Here, where nothing is carried out late: by now the rollout may be on another process than the one that is asked.
      await this.#options.capture?.forget(rolloutId);
      placement.keyHash = keyHashOf(route.apiKey);
      return route;
    } catch (error) {
      if (this.#placements.get(rolloutId) === placement) this.#placements.delete(rolloutId);
      // It may have been carried out all the same.
      this.#giveUp(rolloutId, slot);
      throw error;
    }
  }

  /** Where the rollout is already; null = nowhere, or on a process that does not serve: there it is given up. */
  #ownSlot(rolloutId: string): WorkerSlot | null {
    const slot = this.#placements.get(rolloutId)?.slot;
    if (slot === undefined) return null;
    if (slot.isUp) return slot;
    this.#giveUp(rolloutId, slot);
    this.#placements.delete(rolloutId);
    return null;
  }

  /** Whatever the process still has of it goes, whenever it hears of that. */
  #giveUp(rolloutId: string, slot: WorkerSlot): void {
    slot.tell({ name: 'abort', rolloutId });
    slot.tell({ name: 'forget', rolloutId });
  }

  /** With the fewest rollouts of those that serve, one that did not answer last; GATEWAY_WORKER_LOST when none does in time. */
  async #emptiest(untilMs: number, tried: ReadonlySet<WorkerSlot>): Promise<WorkerSlot> {
    const { clock } = this.#options;
    const leftMs = untilMs - clock.monotonicMs();
    if (!this.#slots.some(({ isUp }) => isUp) && leftMs > 0) {
      using late = new LinkedAbort([]);
      const over = clock.sleep(leftMs, late.signal).catch(() => undefined);
      await Promise.race([...this.#slots.map((slot) => slot.up), over]);
      late.abort(new Error('nobody waits any more'));
    }
    const [emptiest] = this.#slots
      .filter(({ isUp }) => isUp)
      .map((slot) => ({ slot, tries: Number(tried.has(slot)), live: this.#liveOn(slot) }))
      .sort((one, other) => one.tries - other.tries || one.live - other.live);
    if (emptiest !== undefined) return emptiest.slot;
    throw new RolloutError('GATEWAY_WORKER_LOST', 'no process of the gateway serves', {
      phase: 'model-call',
      remedy: 'See the log for why they end; gateway.workers = 0 does without them.',
    });
  }

  #liveOn(slot: WorkerSlot): number {
    let live = 0;
    for (const each of this.#placements.values()) if (each.slot === slot && each.isLive) live += 1;
    return live;
  }

  #heldBy(slot: WorkerSlot): readonly HeldRoute[] {
    return [...this.#placements.values()].flatMap((placement) => {
      const { request, keyHash, used, isLive } = placement;
      if (placement.slot !== slot || !isLive || keyHash === null) return [];
      return [{ request, keyHash, used }];
    });
  }

  /** A route that lives is its rollout's, however often its calls are asked for. */
  #leave(rolloutId: string): void {
    if (this.#placements.get(rolloutId)?.isLive === false) this.#placements.delete(rolloutId);
  }

  #ended(calls: readonly EndedCall[]): void {
    const { onCall, logger } = this.#options;
    for (const { call, used } of calls) {
      const placement = this.#placements.get(call.rolloutId);
      if (placement !== undefined) placement.used = used;
      try {
        onCall(call);
      } catch (error) {
        logger.log('warn', 'an observer of model calls failed', { error: messageOf(error) });
      }
    }
  }
}
