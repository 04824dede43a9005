import { randomUUID } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { LinkedAbort, never } from '../../../src/core/linked-abort.ts';
import { Scope } from '../../../src/core/scope.ts';
import type {
  Environment,
  EnvironmentProvider,
  EnvironmentSpec,
} from '../../../src/environments/environment.ts';
import { environmentSpec } from '../../fakes/environment/environment-spec.ts';
import type { CaseBench, ConformanceAdapter, ConformanceCase } from './adapter.ts';
import { shellProbes } from './probes.ts';

/** What the cases of one adapter share: its provider and one sandbox for cases that leave it as it was. */
export class SuiteBench implements AsyncDisposable {
  readonly #adapter: ConformanceAdapter;
  readonly #scope = new Scope();
  readonly #prefix: string;
  readonly provider: EnvironmentProvider;
  #shared: Promise<Environment> | null = null;

  private constructor(adapter: ConformanceAdapter, prefix: string) {
    this.#adapter = adapter;
    this.#prefix = prefix;
    this.provider = adapter.provider();
    this.#scope.defer(() => this.provider.close());
  }

  /** `prefix` begins the name of every sandbox. */
  static async open(adapter: ConformanceAdapter, prefix: string): Promise<SuiteBench> {
    const bench = new SuiteBench(adapter, prefix);
    await bench.provider.preflight(never);
    return bench;
  }

  async run(testCase: ConformanceCase): Promise<void> {
    const limitMs = testCase.limitMs ?? 30_000;
    using limit = new LinkedAbort([], {
      ms: limitMs,
      reason: () => new Error(`case ${testCase.id} took longer than ${limitMs} ms`),
    });
    await using scope = new Scope();
    const folder = await mkdtemp(join(tmpdir(), 'conformance-'));
    scope.defer(() => rm(folder, { recursive: true, force: true }));
    const bench = this.#caseBench(scope, folder, limit.signal);
    const late = Promise.withResolvers<never>();
    const onLate = (): void => late.reject(limit.signal.reason as Error);
    limit.signal.addEventListener('abort', onLate, { once: true });
    await Promise.race([testCase.run(bench), late.promise]);
  }

  #caseBench(scope: Scope, folder: string, signal: AbortSignal): CaseBench {
    const adapter = this.#adapter;
    const spec = (overrides: Partial<EnvironmentSpec> = {}): EnvironmentSpec =>
      this.#spec(overrides);
    const create = (overrides: Partial<EnvironmentSpec> = {}): Environment => {
      const environment = this.provider.environment(spec(overrides));
      scope.defer(async () => {
        await environment.destroy();
      });
      return environment;
    };
    return {
      adapter,
      provider: this.provider,
      probes: { ...shellProbes, ...adapter.probes },
      signal,
      folder,
      spec,
      create,
      start: async (overrides) => {
        const environment = create(overrides);
        await environment.start({ signal });
        return environment;
      },
      shared: () => this.#sharedEnvironment(),
      otherProvider: async () => {
        const provider = adapter.provider();
        scope.defer(() => provider.close());
        await provider.preflight(signal);
        return provider;
      },
      defer: (release) => scope.defer(release),
    };
  }

  #sharedEnvironment(): Promise<Environment> {
    this.#shared ??= (async () => {
      const environment = this.provider.environment(this.#spec({}));
      this.#scope.defer(async () => {
        await environment.destroy();
      });
      await environment.start({ signal: never });
      return environment;
    })();
    return this.#shared;
  }

  #spec(overrides: Partial<EnvironmentSpec>): EnvironmentSpec {
    const adapter = this.#adapter;
    return environmentSpec(`${this.#prefix}${randomUUID().slice(0, 13)}`, {
      labels: {
        storeId: 'conformance',
        runId: 'conformance-run',
        trial: 'conformance__trial',
        expiresAt: new Date(Date.now() + 3_600_000).toISOString(),
      },
      image: { kind: 'prebuilt', reference: adapter.image },
      network: { mode: 'no-network' },
      ...adapter.specDefaults,
      ...overrides,
    });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#scope[Symbol.asyncDispose]();
  }
}
