import { isRolloutError, RolloutError } from '../../core/errors.ts';
import type { Clock } from '../../core/clock.ts';
import type { SandboxLedger } from '../../store/sandbox-ledger.ts';
import type {
  DestroyReceipt,
  Environment,
  EnvironmentProvider,
  EnvironmentSpec,
  StartReport,
} from '../environment.ts';
import { CreationQueue, type CreationQueueParts } from './creation-queue.ts';
import { WrappedEnvironment, type StartOptions } from './wrapped-environment.ts';
import { WrappedProvider } from './wrapped-provider.ts';

/** Refusals of one start before it fails. */
const maxRefusals = 8;

export type PoliteParts = Omit<CreationQueueParts, 'kind'>;

/**
 * Any provider, whose sandboxes are created no faster and are no more than is allowed, by all processes of this machine together. A provider that throttles
 * is left alone as long as it says. Closing it closes the ledger.
 */
export function politeProvider(
  provider: EnvironmentProvider,
  parts: PoliteParts,
): EnvironmentProvider {
  return new PoliteProvider(provider, parts);
}

class PoliteProvider extends WrappedProvider {
  readonly #queue: CreationQueue;
  readonly #parts: PoliteParts;

  constructor(inner: EnvironmentProvider, parts: PoliteParts) {
    super(inner);
    this.#parts = parts;
    const { createsPerSecond } = parts.limits;
    const limits = {
      ...parts.limits,
      createsPerSecond: createsPerSecond ?? inner.defaultCreatesPerSecond ?? null,
    };
    this.#queue = new CreationQueue({ ...parts, limits, kind: inner.kind });
  }

  override environment(spec: EnvironmentSpec): Environment {
    const { ledger, clock } = this.#parts;
    return new PoliteEnvironment(spec, { provider: this.inner, queue: this.#queue, ledger, clock });
  }

  override async destroyByName(
    name: string,
    options?: { readonly deadlineMs?: number },
  ): Promise<DestroyReceipt> {
    const receipt = await this.inner.destroyByName(name, options);
    this.#parts.ledger.gone(this.kind, name, this.#parts.clock.now().getTime());
    return receipt;
  }

  override async close(): Promise<void> {
    try {
      await this.inner.close();
    } finally {
      this.#parts.ledger.close();
    }
  }
}

interface PoliteEnvironmentParts {
  readonly provider: EnvironmentProvider;
  readonly queue: CreationQueue;
  readonly ledger: SandboxLedger;
  readonly clock: Clock;
}

class PoliteEnvironment extends WrappedEnvironment {
  protected inner: Environment;
  readonly #spec: EnvironmentSpec;
  readonly #parts: PoliteEnvironmentParts;
  #isAdmitted = false;
  #isEnding = false;

  constructor(spec: EnvironmentSpec, parts: PoliteEnvironmentParts) {
    super();
    this.#spec = spec;
    this.#parts = parts;
    this.inner = parts.provider.environment(spec);
  }

  override async start(options: StartOptions): Promise<StartReport> {
    const { queue, provider, clock } = this.#parts;
    const { signal } = options;
    const admitCreate = (each: AbortSignal): Promise<void> => this.#admit(each);
    for (let refusals = 1; ; refusals += 1) {
      let pauseMs = 0;
      try {
        return await this.inner.start({ ...options, admitCreate });
      } catch (error) {
        signal.throwIfAborted();
        if (!isThrottled(error) || this.#isEnding) throw error;
        pauseMs = queue.backOff(refusals, error.retryAfterMs);
        if (refusals === maxRefusals) throw error;
        options.onProgress?.(`the provider asks for a pause of ${Math.round(pauseMs / 1000)} s`);
      }
      await this.inner.destroy();
      await clock.sleep(pauseMs, signal); // what refused need not be a creation
      this.#assertWanted();
      this.inner = provider.environment(this.#spec);
    }
  }

  /** The first call is that of the sandbox, each further one is a repetition. */
  async #admit(signal: AbortSignal): Promise<void> {
    const { queue } = this.#parts;
    const { name, labels } = this.#spec;
    const expiresAtMs = Date.parse(labels.expiresAt);
    if (this.#isAdmitted) await queue.admitFurther(signal);
    else await queue.admit({ name, expiresAtMs }, signal);
    this.#isAdmitted = true;
  }

  /** A sandbox that is made after its end was asked for would have nobody to end it. */
  #assertWanted(): void {
    if (!this.#isEnding) return;
    throw new RolloutError('ENVIRONMENT_LOST', 'the sandbox was ended while it waited', {
      phase: 'environment',
    });
  }

  override async destroy(options?: { readonly deadlineMs?: number }): Promise<DestroyReceipt> {
    this.#isEnding = true;
    const { ledger, clock, provider } = this.#parts;
    const receipt = await this.inner.destroy(options);
    ledger.gone(provider.kind, this.name, clock.now().getTime());
    return receipt;
  }
}

function isThrottled(error: unknown): error is RolloutError {
  return isRolloutError(error, 'ENVIRONMENT_THROTTLED');
}
