import type {
  AbortReceipt,
  ArchivedFiles,
  Execution,
  ExecutionHooks,
  ExecutionRequest,
  ExecutionResult,
} from '../../backends/execution-backend.ts';
import { faultOf } from '../../core/error-fault.ts';
import { messageOf } from '../../core/errors.ts';
import type { RouteActivity } from '../../wire/rollout/route-activity.ts';
import type { FleetHost } from './fleet-host.ts';

/** One lease of a rollout: who holds it, and what is executed under it. */
export class Placement {
  readonly rolloutId: string;
  readonly lease: string;
  readonly #placed = Promise.withResolvers<FleetHost>();
  #host: FleetHost | null = null;
  execution: FleetExecution | null = null;
  /** Where its calls were brought to; absent = nobody has asked. */
  captured: Promise<string | null> | null = null;

  constructor(rolloutId: string, lease: string) {
    this.rolloutId = rolloutId;
    this.lease = lease;
    this.#placed.promise.catch(() => undefined);
  }

  /** null = nobody has claimed it yet. */
  get host(): FleetHost | null {
    return this.#host;
  }

  /** Rejects when it is lost or not wanted before a host has it. */
  get placed(): Promise<FleetHost> {
    return this.#placed.promise;
  }

  /** False = another host has it. */
  take(host: FleetHost): boolean {
    if (this.#host !== null) return this.#host === host;
    this.#host = host;
    this.#placed.resolve(host);
    return true;
  }

  fail(error: Error): void {
    this.#placed.reject(error);
    this.execution?.fail(error);
  }
}

export class FleetExecution implements Execution {
  readonly request: ExecutionRequest;
  readonly #placement: Placement;
  readonly #result = Promise.withResolvers<ExecutionResult>();
  readonly #removeFiles: () => Promise<void>;
  /** What came with its last result and nobody has asked for yet; undefined = nothing. */
  activity: RouteActivity | null | undefined = undefined;
  #receipt: Promise<AbortReceipt> | null = null;
  #hooks: ExecutionHooks | null;

  constructor(
    placement: Placement,
    request: ExecutionRequest,
    more: { readonly hooks: ExecutionHooks; readonly removeFiles: () => Promise<void> },
  ) {
    this.request = request;
    this.#placement = placement;
    this.#hooks = more.hooks;
    this.#removeFiles = more.removeFiles;
    this.#result.promise.catch(() => undefined); // nobody looks at it after an abort
    placement.placed.then(
      (host) => {
        if (host.loss !== null) this.fail(host.loss);
        else if (this.#receipt === null)
          host.tell({ kind: 'execute', lease: placement.lease, request });
      },
      (error: unknown) => this.fail(error as Error),
    );
  }

  get result(): Promise<ExecutionResult> {
    return this.#result.promise;
  }

  /** null = nothing of it counts any more. */
  get hooks(): ExecutionHooks | null {
    return this.#hooks;
  }

  end(result: ExecutionResult): void {
    this.#result.resolve(result);
  }

  fail(error: Error): void {
    this.#hooks = null;
    this.#result.reject(error);
  }

  abort(reason: Error): Promise<AbortReceipt> {
    this.#receipt ??= this.#abortNow(reason);
    return this.#receipt;
  }

  async #abortNow(reason: Error): Promise<AbortReceipt> {
    const { host, lease } = this.#placement;
    const end = (isComplete: boolean, problem: string | null): AbortReceipt => ({
      ...{ stage: 'gone', processesKilled: 0, confirmedGone: [], isComplete, problem },
    });
    if (host === null) return end(true, null);
    try {
      const call = { name: 'abort', reason: faultOf(reason) } as const;
      const receipt = (await host.ask(lease, call)) as AbortReceipt | null;
      return receipt ?? end(true, null);
    } catch (error) {
      return end(false, messageOf(error));
    } finally {
      this.fail(reason);
    }
  }

  async release(archived?: ArchivedFiles): Promise<void> {
    const { host, lease } = this.#placement;
    await this.#removeFiles();
    if (host === null || host.isLost) return;
    await host.ask(lease, { name: 'release', archived: archived ?? null });
  }
}
