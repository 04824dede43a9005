import { lowerId } from '../../../src/core/ids.ts';
import type { EnvironmentSpec } from '../../../src/environments/environment.ts';
import { environmentSpec } from '../../fakes/environment/environment-spec.ts';

export const baseImage = 'debian:bookworm-slim';

/** A spec for tests of the docker environment: a plain sandbox without a network. */
export function dockerSpec(overrides: Partial<EnvironmentSpec> = {}): EnvironmentSpec {
  return environmentSpec(`docker-test-${lowerId(10)}`, {
    labels: {
      storeId: 'docker-tests',
      runId: 'docker-tests-run',
      trial: 'docker-tests__trial',
      expiresAt: new Date(Date.now() + 3_600_000).toISOString(),
    },
    image: { kind: 'prebuilt', reference: baseImage },
    network: { mode: 'no-network' },
    ...overrides,
  });
}
