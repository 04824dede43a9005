/** Many who ask Daytona at once for sandboxes of one Dockerfile, from two processes: the service's builds and refusals are counted. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { never } from '../../../src/core/linked-abort.ts';
import { silentLogger } from '../../../src/core/logger.ts';
import { DaytonaProvider } from '../../../src/environments/daytona/daytona-provider.ts';
import type { EnvironmentProvider } from '../../../src/environments/environment.ts';
import { politeProvider } from '../../../src/environments/shared/polite-provider.ts';
import { SqliteSandboxLedger } from '../../../src/store/sqlite/sqlite-sandbox-ledger.ts';
import { DaytonaService, fakeKey } from '../../fakes/daytona/daytona-service.ts';
import { environmentSpec } from '../../fakes/environment/environment-spec.ts';
import { FastClock } from '../../fakes/fast-clock.ts';
import { SandboxHost } from '../../fakes/sandbox-host/sandbox-host.ts';

const createsPerSecond = 5;

export interface OneBuildReport {
  readonly builds: number;
  readonly started: number;
  readonly refused: number;
  readonly left: number;
}

/** `isPolite: false` is the control: nobody waits for a turn behind the build. */
export async function askForOneImage(options: {
  readonly asks: number;
  readonly rate: number;
  readonly isPolite: boolean;
}): Promise<OneBuildReport> {
  const dir = await mkdtemp(join(tmpdir(), 'slipway-one-build-'));
  const clock = new FastClock(options.rate);
  await writeFile(join(dir, 'Dockerfile'), 'FROM debian:bookworm-slim\nCOPY file /file\n');
  await writeFile(join(dir, 'file'), 'content');
  const contextHash = 'c0ffee'.padEnd(64, '0');
  const image = { kind: 'dockerfile', contextDir: dir, contextHash } as const;
  const limits = { liveSandboxes: null, createsPerSecond, createMs: 2_000 };
  const service = await DaytonaService.start(new SandboxHost({ sandboxes: {}, limits, clock }));
  service.snapshots.buildMs = 10_000;
  const open = (owner: string): EnvironmentProvider =>
    politeProvider(new DaytonaProvider({ apiUrl: service.apiUrl, apiKey: fakeKey }, { clock }), {
      ledger: SqliteSandboxLedger.open(join(dir, 'ledger.sqlite')),
      limits: {
        createsPerSecond: options.isPolite ? createsPerSecond : null,
        ...{ maxLive: null, maxHours: null },
      },
      ...{ clock, logger: silentLogger, random: Math.random, owner },
    });
  const [one, other] = [open('one'), open('other')];
  try {
    const environments = Array.from({ length: options.asks }, (_, n) =>
      (n % 2 === 0 ? one : other).environment(environmentSpec(`asks-${n}`, { image })),
    );
    const starts = await Promise.allSettled(
      environments.map((environment) => environment.start({ signal: never })),
    );
    await Promise.all(environments.map((environment) => environment.destroy()));
    const { snapshots, sandboxes, host } = service;
    return {
      builds: snapshots.builds,
      started: starts.filter(({ status }) => status === 'fulfilled').length,
      refused: host.meter.refused.rate,
      left: sandboxes.length,
    };
  } finally {
    await one.close();
    await other.close();
    await service[Symbol.asyncDispose]();
    await rm(dir, { recursive: true });
  }
}
