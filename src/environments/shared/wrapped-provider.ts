import type {
  DestroyReceipt,
  Environment,
  EnvironmentCapabilities,
  EnvironmentProvider,
  EnvironmentSpec,
  FoundSandbox,
  Isolation,
} from '../environment.ts';

/** A provider that does all as the one inside does, for wrappers that change a few members. */
export class WrappedProvider implements EnvironmentProvider {
  protected readonly inner: EnvironmentProvider;

  constructor(inner: EnvironmentProvider) {
    this.inner = inner;
  }

  get kind(): string {
    return this.inner.kind;
  }

  get isolation(): Isolation {
    return this.inner.isolation;
  }

  get capabilities(): EnvironmentCapabilities {
    return this.inner.capabilities;
  }

  get isRemote(): boolean {
    return this.inner.isRemote === true;
  }

  preflight(signal: AbortSignal): Promise<void> {
    return this.inner.preflight(signal);
  }

  environment(spec: EnvironmentSpec): Environment {
    return this.inner.environment(spec);
  }

  destroyByName(name: string, options?: { readonly deadlineMs?: number }): Promise<DestroyReceipt> {
    return this.inner.destroyByName(name, options);
  }

  list(signal: AbortSignal): Promise<readonly FoundSandbox[]> {
    return this.inner.list(signal);
  }

  close(): Promise<void> {
    return this.inner.close();
  }
}
