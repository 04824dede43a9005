import type { EnvironmentSpec } from '../../../src/environments/environment.ts';

/** A plain sandbox without limits, as any environment can start it; what a test is about goes into `overrides`. */
export function environmentSpec(
  name: string,
  overrides: Partial<EnvironmentSpec> = {},
): EnvironmentSpec {
  return {
    name,
    labels: {
      storeId: 'store',
      runId: 'run',
      trial: 'trial',
      expiresAt: '2100-01-01T00:00:00.000Z',
    },
    image: { kind: 'prebuilt', reference: 'debian:bookworm-slim' },
    forceBuild: false,
    workdir: null,
    env: {},
    limits: { cpus: null, memoryMb: null, storageMb: null, pids: null },
    network: { mode: 'public' },
    laterNetworks: [],
    hostEndpoint: null,
    extraCaBundle: null,
    layers: [],
    ...overrides,
  };
}
