/** The environments of this machine, for tests that need real sandboxes. */
import { existsSync } from 'node:fs';
import { DockerProvider } from '../../src/environments/docker/docker-provider.ts';
import type { EnvironmentProvider } from '../../src/environments/environment.ts';
import { cacheDir, LocalBench, whyNoRunc } from '../environments/local/local-bench.ts';
import path from 'node:path';

export interface OpenProvider {
  readonly provider: EnvironmentProvider;
  readonly close: () => Promise<void>;
}

export interface RealProvider {
  readonly kind: string;
  /** Why it cannot be used here; null when it can. */
  readonly skip: string | null;
  readonly open: () => Promise<OpenProvider>;
}

const socket = '/var/run/docker.sock';

export function realProviders(): readonly RealProvider[] {
  return [
    {
      kind: 'local',
      skip: whyNoRunc(),
      open: async () => {
        const bench = new LocalBench();
        const provider = bench.provider({ runtime: 'runc' });
        const close = async (): Promise<void> => {
          await provider.close();
          bench[Symbol.dispose]();
        };
        return { provider, close };
      },
    },
    {
      kind: 'docker',
      skip: existsSync(socket) ? null : `no Docker engine at ${socket}`,
      open: async () => {
        const ownConfig = path.join(cacheDir, 'docker-config');
        const archives = path.join(cacheDir, 'base-images');
        const provider = new DockerProvider(
          {
            host: `unix://${socket}`,
            dockerConfigDir: existsSync(ownConfig) ? ownConfig : null,
            imageArchivesDir: existsSync(archives) ? archives : null,
          },
          { hostVariables: process.env },
        );
        return { provider, close: () => provider.close() };
      },
    },
  ];
}
