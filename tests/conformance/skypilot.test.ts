import { after, test } from 'node:test';
import { SkypilotProvider } from '../../src/environments/skypilot/skypilot-provider.ts';
import { baseImage, LocalBench, whyNoRunc } from '../environments/local/local-bench.ts';
import { SandboxHost } from '../fakes/sandbox-host/sandbox-host.ts';
import { SkyServer } from '../fakes/skypilot/sky-server.ts';
import { never } from '../../src/core/linked-abort.ts';
import { environmentSuite } from './environment-suite.ts';
import { remoteCases } from './reduced-cases.ts';
import { skypilotDeclines } from './skypilot-declines.ts';

const reason = whyNoRunc();
if (reason === null) {
  const bench = new LocalBench();
  const sandboxes = bench.provider({ runtime: 'runc' });
  await sandboxes.preflight(never);
  const server = await SkyServer.start({ host: new SandboxHost({ sandboxes }) });
  after(async () => {
    await server[Symbol.asyncDispose]();
    await sandboxes.close();
    bench[Symbol.dispose]();
  });
  environmentSuite({
    kind: 'skypilot',
    provider: () => new SkypilotProvider({}, { hostVariables: server.variables }),
    image: baseImage,
    declines: skypilotDeclines,
    only: remoteCases(),
    leftovers: () => Promise.resolve(bench.leftovers()),
  });
} else test('environment conformance: skypilot', { skip: reason }, () => undefined);
