import type {
  DestroyReceipt,
  Environment,
  EnvironmentProvider,
  EnvironmentSpec,
} from '../environment.ts';
import { OwnedEnvironment } from './owned-environment.ts';
import { recordGone, type Ownership } from './ownership.ts';
import { WrappedProvider } from './wrapped-provider.ts';

/** Any provider, with every sandbox journalled before it is created and creations limited. Everything else is the provider's own. */
export function ownedProvider(
  provider: EnvironmentProvider,
  ownership: Ownership,
): EnvironmentProvider {
  return new OwnedProvider(provider, ownership);
}

class OwnedProvider extends WrappedProvider {
  readonly #ownership: Ownership;

  constructor(inner: EnvironmentProvider, ownership: Ownership) {
    super(inner);
    this.#ownership = ownership;
  }

  override environment(spec: EnvironmentSpec): Environment {
    const { kind } = this.inner;
    return new OwnedEnvironment(this.inner.environment(spec), {
      ...this.#ownership,
      kind,
      trial: spec.labels.trial,
    });
  }

  override async destroyByName(
    name: string,
    options?: { readonly deadlineMs?: number },
  ): Promise<DestroyReceipt> {
    const receipt = await this.inner.destroyByName(name, options);
    await recordGone(this.#ownership, name);
    return receipt;
  }
}
