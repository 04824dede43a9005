import { after, test } from 'node:test';
import { SkypilotProvider } from '../../src/environments/skypilot/skypilot-provider.ts';
import { baseImage, LocalBench, whyNoRunc } from '../environments/local/local-bench.ts';
import { SandboxHost } from '../fakes/sandbox-host/sandbox-host.ts';
import { SkyServer } from '../fakes/skypilot/sky-server.ts';
import {
  cachePullingFrom,
  forgetBuilt,
  ImageRegistry,
  whyNoPushes,
} from '../support/image-registry.ts';
import { never } from '../../src/core/linked-abort.ts';
import { environmentSuite } from './environment-suite.ts';
import { reducedCases } from './reduced-cases.ts';
import { skypilotDeclines, skypilotImages } from './skypilot-declines.ts';

const reason = whyNoRunc();
if (reason === null) {
  const bench = new LocalBench();
  // The reduced form has no case with an image of its own.
  const only = reducedCases();
  const whyNoImages = only === undefined ? await whyNoPushes() : 'not asked for';
  const registry = whyNoImages === null ? await ImageRegistry.start() : null;
  const sandboxes = bench.provider({
    runtime: 'runc',
    ...(registry !== null && {
      cacheDir: await cachePullingFrom(registry.address, bench.stateDir),
    }),
  });
  await sandboxes.preflight(never);
  const server = await SkyServer.start({ host: new SandboxHost({ sandboxes }) });
  after(async () => {
    await server[Symbol.asyncDispose]();
    await sandboxes.close();
    await registry?.[Symbol.asyncDispose]();
    bench[Symbol.dispose]();
  });
  const options = registry === null ? {} : { registry: `${registry.address}/conformance` };
  environmentSuite({
    kind: 'skypilot',
    provider: () => new SkypilotProvider(options, { hostVariables: server.variables }),
    image: baseImage,
    declines: [...skypilotDeclines, ...(registry === null ? skypilotImages : [])],
    only,
    ...(registry !== null && {
      forgetImage: (hash) => forgetBuilt(`${registry.address}/conformance/*:${hash.slice(0, 32)}`),
    }),
    leftovers: () => Promise.resolve(bench.leftovers()),
  });
} else test('environment conformance: skypilot', { skip: reason }, () => undefined);
