/** One lease on the host that holds it: its claim, its route, its execution. */
import type {
  Execution,
  ExecutionBackend,
  ExecutionHooks,
  ExecutionRequest,
  ExecutionResult,
} from '../../backends/execution-backend.ts';
import type { Clock } from '../../core/clock.ts';
import { errorOf, faultOf } from '../../core/error-fault.ts';
import { messageOf, RolloutError } from '../../core/errors.ts';
import { LinkedAbort } from '../../core/linked-abort.ts';
import type { Logger } from '../../core/logger.ts';
import type { GatewayControl } from '../../gateway/gateway-control.ts';
import type { RouteActivity } from '../../wire/rollout/route-activity.ts';
import { claimLimit, type ClaimBook, type HeldClaim } from './claims.ts';
import { putFiles, type CarriedFile } from './file-carrier.ts';
import type { CarriedResult, FromHost, HostAnswer, HostCall, WorkItem } from './fleet-messages.ts';
import type { NatsBus } from './nats-bus.ts';
import { ProgressTeller } from './progress-teller.ts';

const probeMs = 2_000;

export interface HeldWorkParts {
  readonly bus: NatsBus;
  readonly claims: ClaimBook;
  readonly backend: ExecutionBackend;
  readonly gateway: GatewayControl;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly maskSecrets: (secrets: readonly string[]) => () => void;
  /** Fires when the host works for that front end no more. */
  readonly signal: AbortSignal;
  readonly say: (message: FromHost) => void;
  readonly nextHook: () => number;
}

export class HeldWork {
  readonly item: WorkItem;
  readonly #parts: HeldWorkParts;
  readonly #hooks = new Map<number, PromiseWithResolvers<undefined>>();
  readonly #unmask: (() => void)[] = [];
  readonly #progress: ProgressTeller;
  #claim: HeldClaim | null = null;
  #execution: Execution | null = null;
  #discarded: Promise<void> | null = null;
  #gaveUp = false;
  #isReleased = false;

  constructor(item: WorkItem, parts: HeldWorkParts) {
    this.item = item;
    this.#parts = parts;
    const { lease } = item;
    this.#progress = new ProgressTeller(
      (progress) => parts.say({ kind: 'progress', lease, progress }),
      parts.clock,
    );
  }

  get hasBegun(): boolean {
    return this.#claim?.claim.hasBegun === true;
  }

  claimed(claim: HeldClaim): void {
    this.#claim = claim;
  }

  execute(request: ExecutionRequest): void {
    if (this.#discarded !== null || this.#gaveUp || this.#execution !== null) return;
    this.#unmask.push(this.#parts.maskSecrets(request.secrets));
    const execution = this.#parts.backend.execute(request, this.#executionHooks());
    this.#execution = execution;
    void this.#follow(execution.result);
  }

  /** False = it is not the hook of this one. */
  hooked(number: number, error: Error | null): boolean {
    const hook = this.#hooks.get(number);
    if (hook === undefined) return false;
    this.#hooks.delete(number);
    if (error === null) hook.resolve(undefined);
    else hook.reject(error);
    return true;
  }

  async carryOut(call: HostCall): Promise<HostAnswer> {
    const { gateway, backend } = this.#parts;
    const { rolloutId } = this.item;
    switch (call.name) {
      case 'register': {
        const { upstreamKey } = call.request;
        if (upstreamKey !== null) this.#unmask.push(this.#parts.maskSecrets([upstreamKey]));
        return await gateway.register(call.request);
      }
      case 'revoke':
        await gateway.revoke(rolloutId);
        return null;
      case 'end calls':
        return await gateway.abort(rolloutId);
      case 'captured':
        return await this.#captured();
      case 'activity':
        return await gateway.activity(rolloutId);
      case 'probe': {
        using limit = new LinkedAbort([], {
          ms: probeMs,
          reason: () => new Error('no answer in time'),
        });
        return (await backend.probe?.(rolloutId, limit.signal)) ?? null;
      }
      case 'probe upstream': {
        using limit = new LinkedAbort([], {
          ms: probeMs,
          reason: () => new Error('no answer in time'),
        });
        return (await gateway.probe?.(rolloutId, limit.signal)) ?? null;
      }
      case 'abort':
        return (await this.#execution?.abort(errorOf(call.reason))) ?? null;
      case 'release':
        this.#isReleased = true;
        await this.#execution?.release(call.archived ?? undefined);
        return null;
    }
  }

  /** The front end is told that it is lost here: it goes elsewhere, or ends. It stays held until the front end drops it. */
  giveUp(reason: RolloutError): void {
    this.#gaveUp = true;
    for (const { reject } of this.#hooks.values()) reject(reason);
    this.#parts.say({ kind: 'broken', lease: this.item.lease, fault: faultOf(reason) });
  }

  /** Ends what there is of it; resolves when it is gone. Idempotent. Never rejects. */
  discard(reason: RolloutError): Promise<void> {
    this.#discarded ??= this.#discardNow(reason);
    return this.#discarded;
  }

  async #discardNow(reason: RolloutError): Promise<void> {
    const { gateway, logger } = this.#parts;
    const { rolloutId } = this.item;
    this.#progress.close();
    for (const { reject } of this.#hooks.values()) reject(reason);
    const ended = await Promise.allSettled([
      gateway.abort(rolloutId),
      this.#execution?.abort(reason) ?? Promise.resolve(null),
    ]);
    ended.push(
      ...((await Promise.allSettled([
        this.#isReleased ? Promise.resolve() : this.#execution?.release({ isComplete: false }),
        gateway.forget(rolloutId),
      ])) as PromiseSettledResult<null>[]),
    );
    for (const one of ended)
      if (one.status === 'rejected')
        logger.log('warn', 'something of a rollout was not ended', {
          rolloutId,
          error: messageOf(one.reason),
        });
    for (const unmask of this.#unmask.splice(0)) unmask();
  }

  #executionHooks(): ExecutionHooks {
    return {
      agentBegins: async () => {
        const claim = this.#claim;
        using limit = claimLimit(this.#parts.signal);
        const begun = claim === null ? null : await this.#parts.claims.begin(claim, limit.signal);
        if (begun === null) throw new TypeError('the rollout is not this host’s any more');
        this.#claim = begun;
        await this.#ask(null);
      },
      workflowCompleted: (result) => this.#ask({ ...result, files: [] }),
      progress: (progress) => this.#progress.tell(progress),
    };
  }

  async #ask(result: CarriedResult | null): Promise<void> {
    const { say, signal } = this.#parts;
    const activity = result === null ? null : await this.#activity();
    signal.throwIfAborted();
    if (this.#discarded !== null || this.#gaveUp) throw new TypeError('the rollout is being ended');
    const number = this.#parts.nextHook();
    const answered = Promise.withResolvers<undefined>();
    this.#hooks.set(number, answered);
    this.#progress.flush();
    say({ kind: 'hook', number, lease: this.item.lease, result, activity });
    await answered.promise;
  }

  async #follow(ending: Promise<ExecutionResult>): Promise<void> {
    const { say, bus, signal } = this.#parts;
    const { lease } = this.item;
    try {
      const result = await ending;
      this.#progress.close();
      if (this.#discarded !== null) return;
      const files = await putFiles(result.files, `${lease}/result`, { store: bus.files, signal });
      say({ kind: 'ended', lease, result: { ...result, files }, activity: await this.#activity() });
    } catch (error) {
      if (this.#discarded === null) say({ kind: 'broken', lease, fault: faultOf(error) });
    }
  }

  async #activity(): Promise<RouteActivity | null> {
    return await this.#parts.gateway.activity(this.item.rolloutId);
  }

  async #captured(): Promise<readonly CarriedFile[] | null> {
    const { gateway, bus, signal } = this.#parts;
    const file = await gateway.captured(this.item.rolloutId);
    if (file === null) return null;
    const files = [{ name: 'calls', path: file }];
    return await putFiles(files, `${this.item.lease}/calls`, { store: bus.files, signal });
  }
}
