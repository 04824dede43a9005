import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { after } from 'node:test';
import { ProcessBackend } from '../../src/app/serve/process-backend.ts';
import { LocalBackend } from '../../src/backends/local/local-backend.ts';
import { NullBackend } from '../../src/backends/null/null-backend.ts';
import { readMachine } from '../../src/config/machine.ts';
import { compileServeConfig } from '../../src/config/serve/read-serve-config.ts';
import { systemClock } from '../../src/core/clock.ts';
import { never } from '../../src/core/linked-abort.ts';
import { silentLogger } from '../../src/core/logger.ts';
import { harborBench } from '../backends/harbor/harbor-bench.ts';
import { nativeBench } from '../backends/native/native-bench.ts';
import { FakeProvider } from '../fakes/environment/fake-provider.ts';
import { answerTask } from '../trial/trial-bench.ts';
import { backendSuite, type RolloutKind } from './backend-suite.ts';
import { obedient, withTasks } from './trial-backends.ts';
import { systemPython } from '../backends/local/local-bench.ts';

const limits = { maxConcurrent: 4, maxQueueDepth: 4 };
const parts = { limits, clock: systemClock, logger: silentLogger };

const told: Readonly<Record<RolloutKind, object>> = {
  succeeds: { reward: 0.5 },
  fails: { fail: 'AGENT_FAILED' },
  runs: { duration_ms: 3_600_000 },
};

backendSuite({
  name: 'null',
  chargesQueueTime: false,
  leavesFiles: false,
  open: () => {
    const backend = new NullBackend({}, parts);
    return Promise.resolve({
      backend,
      metadata: (kind) => ({ null: told[kind] }),
      [Symbol.asyncDispose]: () => backend.close(),
    });
  },
});

/** Starting a process takes its time: one is for all, and the case that closes its backend is the last. */
const child = { folder: '', backend: null as Promise<ProcessBackend> | null };

async function startProcess(): Promise<ProcessBackend> {
  child.folder = await mkdtemp(path.join(tmpdir(), 'slipway-process-'));
  const variables = { HOME: child.folder };
  const document = { backend: { kind: 'null' }, data_dir: child.folder };
  const machine = readMachine(variables, child.folder);
  const config = compileServeConfig({ flags: {}, document, file: null }, machine);
  const composition = { variables, cwd: child.folder };
  const onLost = (reason: Error): never => assert.fail(reason);
  const backend = await ProcessBackend.open({ config, composition }, { ...parts, onLost });
  await backend.start(never);
  return backend;
}

after(async () => {
  await (await child.backend)?.close();
  await rm(child.folder, { recursive: true, force: true });
});

backendSuite({
  name: 'null in a process',
  kind: 'null',
  chargesQueueTime: false,
  leavesFiles: false,
  open: async () => ({
    backend: await (child.backend ??= startProcess()),
    metadata: (kind) => ({ null: told[kind] }),
    [Symbol.asyncDispose]: () => Promise.resolve(),
  }),
});

const userCode = path.join(import.meta.dirname, '../backends/local/user');
const kinds = [
  ['local', `${userCode}-code.ts`, 'sleeps', 64],
  ['local in Python', `${userCode}_code.py`, 'heeds', null],
] as const;

for (const [name, file, runs, memory_mb] of kinds)
  backendSuite({
    name,
    kind: 'local',
    chargesQueueTime: true,
    leavesFiles: true,
    open: async () => {
      const dataDir = await mkdtemp(path.join(tmpdir(), 'slipway-local-'));
      const options = { workflow: `${file}:Workflow`, grader: `${file}:TestGrader`, memory_mb };
      const backend = new LocalBackend(
        { ...options, workflow_config: { name: 'test' } },
        { ...parts, ...systemPython, dataDir, baseDir: dataDir },
      );
      await backend.start(never);
      const acts: Readonly<Record<RolloutKind, string>> = {
        ...{ succeeds: 'artifacts', fails: 'throws', runs },
      };
      return {
        backend,
        metadata: (kind) => ({ act: acts[kind], grade: 'seven' }),
        [Symbol.asyncDispose]: async () => {
          await backend.close();
          await rm(dataDir, { recursive: true, force: true });
        },
      };
    },
  });

backendSuite({
  name: 'native',
  chargesQueueTime: false,
  leavesFiles: true,
  open: async () => {
    const bench = await nativeBench({ resolveAgent: obedient });
    return await withTasks(bench);
  },
});

backendSuite({
  name: 'harbor',
  chargesQueueTime: false,
  leavesFiles: true,
  open: async () => {
    const bench = await harborBench({
      provider: new FakeProvider(),
      files: answerTask,
      options: { agent: 'oracle', task_mode: 'dataset' },
      resolveAgent: obedient,
    });
    return await withTasks(bench);
  },
});
