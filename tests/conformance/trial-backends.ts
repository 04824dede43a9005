/** What the rows of backends that run trials share. */
import type { AgentResolver } from '../../src/agents/agent.ts';
import type { ExecutionBackend } from '../../src/backends/execution-backend.ts';
import { taskFolder, type FolderFiles } from '../fakes/task-folder.ts';
import { answerTask } from '../trial/trial-bench.ts';
import type { RolloutKind } from './backend-suite.ts';

/** Does what the instruction of the task says. */
export const obedient: AgentResolver = () =>
  Promise.resolve(() => ({
    name: 'obedient',
    version: '1',
    capabilities: { resume: false, loadTrajectory: false, windows: false },
    hostFiles: [],
    hostOnlyVariables: [],
    setup: () => Promise.resolve(),
    run: async ({ environment, instruction }, signal) => {
      if (instruction.startsWith('wait'))
        await new Promise((_resolve, reject) =>
          signal.addEventListener('abort', () => reject(signal.reason as Error)),
        );
      await environment.exec({ command: 'mkdir -p /app && echo yes > /app/answer' }, signal);
    },
  }));

/** A backend of trials as the suite wants it: a task for each kind of rollout. */
export async function withTasks(
  bench: AsyncDisposable & { readonly backend: ExecutionBackend; readonly taskDir: string },
  files: FolderFiles = answerTask,
) {
  const broken = await taskFolder({ ...files, 'tests/test.sh': '#!/bin/bash\nexit 0\n' });
  const waiting = await taskFolder({ ...files, 'instruction.md': 'wait\n' });
  const dirs: Readonly<Record<RolloutKind, string>> = {
    succeeds: bench.taskDir,
    fails: broken.dir,
    runs: waiting.dir,
  };
  return {
    backend: bench.backend,
    metadata: (kind: RolloutKind) => ({ harbor_task: dirs[kind] }),
    [Symbol.asyncDispose]: async () => {
      await bench[Symbol.asyncDispose]();
      await broken[Symbol.asyncDispose]();
      await waiting[Symbol.asyncDispose]();
    },
  };
}
