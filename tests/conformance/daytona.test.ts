import { after, test } from 'node:test';
import { never } from '../../src/core/linked-abort.ts';
import { DaytonaProvider } from '../../src/environments/daytona/daytona-provider.ts';
import { baseImage, LocalBench, whyNoRunc } from '../environments/local/local-bench.ts';
import { DaytonaService, fakeKey } from '../fakes/daytona/daytona-service.ts';
import { SandboxHost } from '../fakes/sandbox-host/sandbox-host.ts';
import { daytonaCases, daytonaDeclines } from './daytona-declines.ts';
import { environmentSuite } from './environment-suite.ts';
import { reducedCases } from './reduced-cases.ts';

const reason = whyNoRunc();
if (reason === null) {
  const bench = new LocalBench();
  const sandboxes = bench.provider({ runtime: 'runc' });
  await sandboxes.preflight(never);
  const service = await DaytonaService.start(new SandboxHost({ sandboxes }));
  after(async () => {
    await service[Symbol.asyncDispose]();
    await sandboxes.close();
    bench[Symbol.dispose]();
  });
  environmentSuite({
    kind: 'daytona',
    provider: () => new DaytonaProvider({ apiUrl: service.apiUrl, apiKey: fakeKey, pollMs: 50 }),
    image: baseImage,
    declines: daytonaDeclines,
    only: reducedCases() ?? daytonaCases,
    leftovers: (prefix) =>
      Promise.resolve(
        service.sandboxes.map(({ name }) => name).filter((name) => name.startsWith(prefix)),
      ),
    forgetImage: () => {
      service.snapshots.forgetAll();
      return Promise.resolve();
    },
  });
} else test('environment conformance: daytona', { skip: reason }, () => undefined);
