/** What tests of the daytona environment share: the fake service on light sandboxes or real ones, and a provider that speaks to it. */
import { randomUUID } from 'node:crypto';
import { DaytonaProvider } from '../../../src/environments/daytona/daytona-provider.ts';
import type { DaytonaOptions, DaytonaPorts } from '../../../src/environments/daytona/options.ts';
import type { EnvironmentSpec } from '../../../src/environments/environment.ts';
import { DaytonaService, fakeKey } from '../../fakes/daytona/daytona-service.ts';
import { environmentSpec } from '../../fakes/environment/environment-spec.ts';
import { SandboxHost, type SandboxHostOptions } from '../../fakes/sandbox-host/sandbox-host.ts';

export class DaytonaBench implements AsyncDisposable {
  readonly service: DaytonaService;
  readonly #providers: DaytonaProvider[] = [];

  private constructor(service: DaytonaService) {
    this.service = service;
  }

  static async open(options: Partial<SandboxHostOptions> = {}): Promise<DaytonaBench> {
    return new DaytonaBench(
      await DaytonaService.start(new SandboxHost({ sandboxes: {}, ...options })),
    );
  }

  provider(options: DaytonaOptions = {}, ports: Partial<DaytonaPorts> = {}): DaytonaProvider {
    const { apiUrl } = this.service;
    const provider = new DaytonaProvider(
      { apiUrl, apiKey: fakeKey, pollMs: 10, ...options },
      ports,
    );
    this.#providers.push(provider);
    return provider;
  }

  spec(overrides: Partial<EnvironmentSpec> = {}): EnvironmentSpec {
    return environmentSpec(`daytona-${randomUUID().slice(0, 13)}`, {
      image: { kind: 'prebuilt', reference: 'debian:bookworm-slim' },
      ...overrides,
    });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const provider of this.#providers) await provider.close();
    await this.service[Symbol.asyncDispose]();
  }
}
