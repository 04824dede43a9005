import { lowerId } from '../../../src/core/ids.ts';
import type { EnvironmentSpec } from '../../../src/environments/environment.ts';

export const baseImage = 'debian:bookworm-slim';

/** A spec for tests of the docker environment: a plain sandbox without a network. */
export function dockerSpec(overrides: Partial<EnvironmentSpec> = {}): EnvironmentSpec {
  return {
    name: `docker-test-${lowerId(10)}`,
    labels: {
      storeId: 'docker-tests',
      runId: 'docker-tests-run',
      trial: 'docker-tests__trial',
      expiresAt: new Date(Date.now() + 3_600_000).toISOString(),
    },
    image: { kind: 'prebuilt', reference: baseImage },
    forceBuild: false,
    workdir: null,
    env: {},
    limits: { cpus: null, memoryMb: null, storageMb: null, pids: null },
    network: { mode: 'no-network' },
    laterNetworks: [],
    hostEndpoint: null,
    extraCaBundle: null,
    ...overrides,
  };
}
