import { never } from '../../../src/core/linked-abort.ts';
import type { EnvironmentSpec } from '../../../src/environments/environment.ts';
import type { SkyOptions } from '../../../src/environments/skypilot/options.ts';
import { SkypilotProvider } from '../../../src/environments/skypilot/skypilot-provider.ts';
import { environmentSpec } from '../../fakes/environment/environment-spec.ts';
import { SandboxHost } from '../../fakes/sandbox-host/sandbox-host.ts';
import { ServiceFaults, type ServiceLimits } from '../../fakes/sandbox-host/service-faults.ts';
import type { PlatformOptions } from '../../fakes/skypilot/sky-platform.ts';
import { lightSkyAnswer, SkyServer } from '../../fakes/skypilot/sky-server.ts';

/** A fake platform with light sandboxes, and providers on it. */
export class SkyBench implements AsyncDisposable {
  readonly server: SkyServer;
  readonly #providers: SkypilotProvider[] = [];

  private constructor(server: SkyServer) {
    this.server = server;
  }

  static async open(
    platform: Omit<PlatformOptions, 'host'> & { readonly limits?: Partial<ServiceLimits> } = {},
  ): Promise<SkyBench> {
    const { limits = {}, ...options } = platform;
    const sandboxes = { answer: lightSkyAnswer };
    const host = new SandboxHost({ sandboxes, limits, faults: new ServiceFaults() });
    return new SkyBench(await SkyServer.start({ ...options, host, isLight: true }));
  }

  provider(
    options: SkyOptions = {},
    variables: Readonly<Record<string, string>> = {},
  ): SkypilotProvider {
    const hostVariables = { ...this.server.variables, ...variables };
    const provider = new SkypilotProvider(options, { hostVariables });
    this.#providers.push(provider);
    return provider;
  }

  /** Starts a sandbox. */
  async start(provider: SkypilotProvider, name: string, overrides: Partial<EnvironmentSpec> = {}) {
    const environment = provider.environment(environmentSpec(name, overrides));
    await environment.start({ signal: never });
    return environment;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all(this.#providers.map((provider) => provider.close()));
    await this.server[Symbol.asyncDispose]();
  }
}
