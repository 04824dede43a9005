/** The table of the native backend on sandboxes of SkyPilot's fake. */
import { after, test } from 'node:test';
import { never } from '../../src/core/linked-abort.ts';
import { SkypilotProvider } from '../../src/environments/skypilot/skypilot-provider.ts';
import { nativeBench } from '../backends/native/native-bench.ts';
import { baseImage, LocalBench, whyNoRunc } from '../environments/local/local-bench.ts';
import { SandboxHost } from '../fakes/sandbox-host/sandbox-host.ts';
import { SkyServer } from '../fakes/skypilot/sky-server.ts';
import { answerTask } from '../trial/trial-bench.ts';
import { backendSuite } from './backend-suite.ts';
import { reducedRollouts } from './reduced-cases.ts';
import { obedient, withTasks } from './trial-backends.ts';

const reason = whyNoRunc();
if (reason === null) {
  const local = new LocalBench();
  const sandboxes = local.provider({ runtime: 'runc' });
  await sandboxes.preflight(never);
  const server = await SkyServer.start({ host: new SandboxHost({ sandboxes }) });
  const providers: SkypilotProvider[] = [];
  after(async () => {
    await Promise.all(providers.map((provider) => provider.close()));
    await server[Symbol.asyncDispose]();
    await sandboxes.close();
    local[Symbol.dispose]();
  });
  const files = {
    ...answerTask,
    'task.toml': `[environment]\ndocker_image = "${baseImage}"\n`,
  };
  backendSuite({
    name: 'native on skypilot',
    kind: 'native',
    chargesQueueTime: false,
    leavesFiles: true,
    only: reducedRollouts(),
    open: async () => {
      const provider = new SkypilotProvider({}, { hostVariables: server.variables });
      providers.push(provider);
      await provider.preflight(never);
      return await withTasks(await nativeBench({ provider, files, resolveAgent: obedient }), files);
    },
  });
} else test('native on skypilot', { skip: reason }, () => undefined);
