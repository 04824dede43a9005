/** The table of the native backend on sandboxes of Daytona's fake. */
import { after, test } from 'node:test';
import { never } from '../../src/core/linked-abort.ts';
import { nativeBench } from '../backends/native/native-bench.ts';
import { DaytonaBench } from '../environments/daytona/daytona-bench.ts';
import { baseImage, LocalBench, whyNoRunc } from '../environments/local/local-bench.ts';
import { answerTask } from '../trial/trial-bench.ts';
import { backendSuite } from './backend-suite.ts';
import { reducedRollouts } from './reduced-cases.ts';
import { obedient, withTasks } from './trial-backends.ts';

const reason = whyNoRunc();
if (reason === null) {
  const local = new LocalBench();
  const sandboxes = local.provider({ runtime: 'runc' });
  await sandboxes.preflight(never);
  const bench = await DaytonaBench.open({ sandboxes });
  after(async () => {
    await bench[Symbol.asyncDispose]();
    await sandboxes.close();
    local[Symbol.dispose]();
  });
  const files = {
    ...answerTask,
    'task.toml': `[environment]\ndocker_image = "${baseImage}"\n`,
  };
  backendSuite({
    name: 'native on daytona',
    kind: 'native',
    chargesQueueTime: false,
    leavesFiles: true,
    only: reducedRollouts(),
    open: async () => {
      const provider = bench.provider();
      await provider.preflight(never);
      return await withTasks(await nativeBench({ provider, files, resolveAgent: obedient }), files);
    },
  });
} else test('native on daytona', { skip: reason }, () => undefined);
