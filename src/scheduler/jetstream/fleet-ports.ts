/** The hosts of a fleet as the scheduler knows a backend and a gateway: every question goes to the host that holds the rollout. */
import { rm } from 'node:fs/promises';
import type {
  Execution,
  ExecutionBackend,
  ExecutionHooks,
  ExecutionProbe,
  ExecutionRequest,
} from '../../backends/execution-backend.ts';
import { RolloutError } from '../../core/errors.ts';
import type {
  GatewayControl,
  RouteAbort,
  RouteRequest,
  UpstreamProbe,
} from '../../gateway/gateway-control.ts';
import type { ModelRoute } from '../../wire/rollout/model-route.ts';
import type { RouteActivity } from '../../wire/rollout/route-activity.ts';
import type { CarriedFile } from './file-carrier.ts';
import type { FleetFront } from './fleet-front.ts';
import type { FleetHost } from './fleet-host.ts';
import type { HostAnswer, HostCall } from './fleet-messages.ts';
import { FleetExecution, Placement } from './placement.ts';

export class FleetBackend implements ExecutionBackend {
  readonly kind: string;
  readonly #front: FleetFront;

  constructor(kind: string, front: FleetFront) {
    this.kind = kind;
    this.#front = front;
  }

  /** As its hosts say; nothing is executed before one has joined. */
  get capturesFinalResult(): boolean {
    return this.#front.facts?.capturesFinalResult ?? false;
  }

  health(): Readonly<Record<string, unknown>> {
    const hosts = this.#front.hosts.map(({ name, slots, version }) => ({ name, slots, version }));
    return { status: 'ok', backend: this.kind, ...this.#front.facts?.health, hosts };
  }

  start(): Promise<void> {
    return Promise.resolve();
  }

  execute(request: ExecutionRequest, hooks: ExecutionHooks): Execution {
    const known = this.#front.placement(request.id);
    const placement = known ?? new Placement(request.id, 'none');
    if (known === null) placement.fail(notGiven());
    const dir = this.#front.filesDirOf(placement.lease, 'result');
    const removeFiles = (): Promise<void> => rm(dir, { recursive: true, force: true });
    placement.execution = new FleetExecution(placement, request, { hooks, removeFiles });
    return placement.execution;
  }

  async probe(id: string, signal: AbortSignal): Promise<ExecutionProbe | null> {
    const placement = this.#front.placement(id);
    if (placement?.host == null) return null;
    return (await placement.host.ask(
      placement.lease,
      { name: 'probe' },
      signal,
    )) as ExecutionProbe | null;
  }

  forget(ids: readonly string[]): Promise<void> {
    this.#front.forget(ids);
    return Promise.resolve();
  }

  close(): Promise<void> {
    return Promise.resolve();
  }
}

export class FleetGateway implements GatewayControl {
  readonly #front: FleetFront;
  readonly #revoked = new WeakSet<Placement>();

  constructor(front: FleetFront) {
    this.#front = front;
  }

  async register(request: RouteRequest): Promise<ModelRoute> {
    const placement = this.#front.placement(request.rolloutId);
    if (placement === null) throw notGiven();
    const host = await placement.placed;
    return (await host.ask(placement.lease, { name: 'register', request })) as ModelRoute;
  }

  async revoke(rolloutId: string): Promise<void> {
    const placement = this.#front.placement(rolloutId);
    if (placement?.host == null || this.#revoked.has(placement)) return;
    try {
      await placement.host.ask(placement.lease, { name: 'revoke' });
      this.#revoked.add(placement);
    } catch {
      // One that does not answer is no reason to wait for it for ever.
    }
  }

  async abort(rolloutId: string): Promise<RouteAbort> {
    const placement = this.#front.placement(rolloutId);
    if (placement !== null && placement.host === null)
      placement.fail(
        new RolloutError('CANCELLED', 'it is not wanted any more', { phase: 'queue' }),
      );
    const ended = (await this.#ask(rolloutId, { name: 'end calls' })) as RouteAbort | null;
    return ended ?? { callsEnded: 0 };
  }

  captured(rolloutId: string): Promise<string | null> {
    const placement = this.#front.placement(rolloutId);
    if (placement?.host == null) return Promise.resolve(null);
    placement.captured ??= this.#bring(placement, placement.host);
    return placement.captured;
  }

  /** The host forgets them with the lease. */
  async forget(rolloutId: string): Promise<void> {
    const placement = this.#front.placement(rolloutId);
    if (placement === null) return;
    placement.captured = null;
    await rm(this.#front.filesDirOf(placement.lease, 'calls'), { recursive: true, force: true });
  }

  async activity(rolloutId: string): Promise<RouteActivity | null> {
    const placement = this.#front.placement(rolloutId);
    if (placement?.host == null) return null;
    const { execution } = placement;
    const told = execution?.activity;
    if (execution !== null) execution.activity = undefined;
    if (told !== undefined) return told;
    const call: HostCall = { name: 'activity' };
    return (await placement.host.askIfThere(placement.lease, call)) as RouteActivity | null;
  }

  async probe(rolloutId: string, signal: AbortSignal): Promise<UpstreamProbe | null> {
    const placement = this.#front.placement(rolloutId);
    if (placement?.host == null) return null;
    const answer = placement.host.ask(placement.lease, { name: 'probe upstream' }, signal);
    return (await answer.catch(() => null)) as UpstreamProbe | null;
  }

  async #bring(placement: Placement, host: FleetHost): Promise<string | null> {
    const carried = (await host.ask(placement.lease, { name: 'captured' })) as
      readonly CarriedFile[] | null;
    if (carried === null) return null;
    const [file] = await this.#front.bring(
      carried,
      this.#front.filesDirOf(placement.lease, 'calls'),
    );
    return file?.path ?? null;
  }

  /** null where nobody holds it; a host that does not answer is no reason to wait for it for ever. */
  async #ask(rolloutId: string, call: HostCall): Promise<HostAnswer> {
    const placement = this.#front.placement(rolloutId);
    if (placement?.host == null) return null;
    return await placement.host.askIfThere(placement.lease, call);
  }
}

function notGiven(): RolloutError {
  return new RolloutError('WORKER_LOST', 'no host holds the rollout', { phase: 'server' });
}
