import type {
  DestroyReceipt,
  Environment,
  EnvironmentCapabilities,
  EnvironmentProvider,
  EnvironmentSpec,
  FoundSandbox,
  Isolation,
} from '../environment.ts';
import { OwnedEnvironment } from './owned-environment.ts';
import { recordGone, type Ownership } from './ownership.ts';

/** Any provider, with every sandbox journalled before it is created and creations limited. Everything else is the provider's own. */
export function ownedProvider(
  provider: EnvironmentProvider,
  ownership: Ownership,
): EnvironmentProvider {
  return new OwnedProvider(provider, ownership);
}

class OwnedProvider implements EnvironmentProvider {
  readonly #inner: EnvironmentProvider;
  readonly #ownership: Ownership;

  constructor(inner: EnvironmentProvider, ownership: Ownership) {
    this.#inner = inner;
    this.#ownership = ownership;
  }

  get kind(): string {
    return this.#inner.kind;
  }

  get isolation(): Isolation {
    return this.#inner.isolation;
  }

  get capabilities(): EnvironmentCapabilities {
    return this.#inner.capabilities;
  }

  preflight(signal: AbortSignal): Promise<void> {
    return this.#inner.preflight(signal);
  }

  environment(spec: EnvironmentSpec): Environment {
    const { kind } = this.#inner;
    return new OwnedEnvironment(this.#inner.environment(spec), {
      ...this.#ownership,
      kind,
      trial: spec.labels.trial,
    });
  }

  async destroyByName(
    name: string,
    options?: { readonly deadlineMs?: number },
  ): Promise<DestroyReceipt> {
    const receipt = await this.#inner.destroyByName(name, options);
    await recordGone(this.#ownership, name);
    return receipt;
  }

  list(signal: AbortSignal): Promise<readonly FoundSandbox[]> {
    return this.#inner.list(signal);
  }

  close(): Promise<void> {
    return this.#inner.close();
  }
}
