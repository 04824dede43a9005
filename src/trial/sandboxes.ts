import type { Clock } from '../core/clock.ts';
import { isRolloutError, messageOf } from '../core/errors.ts';
import type {
  DestroyReceipt,
  Environment,
  EnvironmentLayer,
  EnvironmentProvider,
  HostEndpoint,
} from '../environments/environment.ts';
import { unsupported } from './capability-checks.ts';
import type { SandboxPlan } from './sandbox-plan.ts';
import { sandboxName } from './trial-name.ts';

export interface SandboxesOptions {
  readonly provider: EnvironmentProvider;
  readonly clock: Clock;
  readonly storeId: string;
  readonly runId: string;
  readonly trialName: string;
  readonly extraCaBundle: string | null;
  readonly hostEndpoint: HostEndpoint | null;
  readonly layers?: readonly EnvironmentLayer[];
}

/** How long a sandbox may outlive its plan before anybody may remove it. */
const expiryMarginMs = 60 * 60_000;
/** Expiry of a sandbox whose trial has no limit. */
const unlimitedExpiryMs = 24 * 60 * 60_000;

/** The sandboxes of one trial: made here, so that all of them are found again when it ends. */
export class Sandboxes {
  readonly #options: SandboxesOptions;
  readonly #open: Environment[] = [];

  constructor(options: SandboxesOptions) {
    this.#options = options;
  }

  /** Those that were made and not yet confirmed gone, newest last. */
  get open(): readonly Environment[] {
    return this.#open;
  }

  /** Makes the object; nothing is started. `lifetimeMs` may be Infinity. CAPABILITY_UNSUPPORTED for layers that the environment does not have. */
  make(plan: SandboxPlan, making: MakeOptions): Environment {
    const { part, forceBuild, lifetimeMs } = making;
    const { provider, clock, storeId, runId, trialName } = this.#options;
    const layers = [...(this.#options.layers ?? []), ...(making.layers ?? [])];
    if (layers.length > 0 && !provider.capabilities.layers)
      throw unsupported(provider, 'environment.type', { needs: 'folders of this machine' });
    const expiryMs = Number.isFinite(lifetimeMs) ? lifetimeMs + expiryMarginMs : unlimitedExpiryMs;
    const environment = provider.environment({
      name: sandboxName(trialName, part),
      labels: {
        storeId,
        runId,
        trial: trialName,
        expiresAt: new Date(clock.now().getTime() + expiryMs).toISOString(),
      },
      image: plan.image,
      forceBuild,
      workdir: plan.workdir,
      env: plan.env,
      limits: plan.limits,
      network: plan.network,
      laterNetworks: plan.laterNetworks,
      hostEndpoint: making.hostEndpoint ?? this.#options.hostEndpoint,
      extraCaBundle: this.#options.extraCaBundle,
      layers,
    });
    this.#open.push(environment);
    return environment;
  }

  /** Destroys one; it is forgotten only when it is confirmed gone. ENVIRONMENT_DESTROY_FAILED otherwise. */
  async destroy(environment: Environment, deadlineMs: number): Promise<DestroyReceipt> {
    const receipt = await environment.destroy({ deadlineMs });
    this.#forget(environment);
    return receipt;
  }

  /** Destroys all that are open, by name where the object itself fails. Every one is tried; the first failure is thrown afterwards. */
  async destroyAll(deadlineMs: number): Promise<readonly DestroyReceipt[]> {
    const since = this.#options.clock.monotonicMs();
    const left = (): number =>
      Math.max(1_000, deadlineMs - (this.#options.clock.monotonicMs() - since));
    const receipts: DestroyReceipt[] = [];
    const failures: unknown[] = [];
    for (const environment of [...this.#open].reverse()) {
      try {
        receipts.push(await this.destroy(environment, left()));
      } catch (error) {
        await this.#destroyByName(environment, left()).then(
          (receipt) => receipts.push(receipt),
          () => failures.push(error),
        );
      }
    }
    if (failures.length > 0) throw failures[0] as Error;
    return receipts;
  }

  async #destroyByName(environment: Environment, deadlineMs: number): Promise<DestroyReceipt> {
    const receipt = await this.#options.provider.destroyByName(environment.name, { deadlineMs });
    this.#forget(environment);
    return receipt;
  }

  #forget(environment: Environment): void {
    const at = this.#open.indexOf(environment);
    if (at !== -1) this.#open.splice(at, 1);
  }
}

interface MakeOptions {
  /** Tells the sandboxes of one trial apart: `env`, `verifier`. */
  readonly part: string;
  readonly forceBuild: boolean;
  readonly lifetimeMs: number;
  /** Beside those of all sandboxes. */
  readonly layers?: readonly EnvironmentLayer[];
  /** Instead of that of all sandboxes. */
  readonly hostEndpoint?: HostEndpoint | null;
}

export function problemOf(error: unknown): string {
  return isRolloutError(error) ? error.describe() : messageOf(error);
}
