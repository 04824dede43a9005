/** What tests of the native backend share: the backend on sandboxes in memory, with tasks of a few files. */
import { mkdtemp, rm } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import type { AgentResolver } from '../../../src/agents/agent.ts';
import { resolveAgent } from '../../../src/agents/registry.ts';
import type {
  ExecutionHooks,
  ExecutionRequest,
  ExecutionResult,
} from '../../../src/backends/execution-backend.ts';
import { NativeBackend } from '../../../src/backends/native/native-backend.ts';
import type { NativePorts } from '../../../src/backends/native/native-ports.ts';
import { systemClock } from '../../../src/core/clock.ts';
import { RolloutError } from '../../../src/core/errors.ts';
import { never } from '../../../src/core/linked-abort.ts';
import { silentLogger, type Logger } from '../../../src/core/logger.ts';
import type { EngineOpener } from '../../../src/engines/engine.ts';
import { openEngine } from '../../../src/engines/registry.ts';
import type { EnvironmentProvider } from '../../../src/environments/environment.ts';
import { loadTask } from '../../../src/tasks/load-task.ts';
import { createTrial } from '../../../src/trial/trial.ts';
import type { RolloutProgress } from '../../../src/wire/rollout/progress.ts';
import { FakeProvider } from '../../fakes/environment/fake-provider.ts';
import { taskFolder, type FolderFiles } from '../../fakes/task-folder.ts';
import { answerTask } from '../../trial/trial-bench.ts';

export interface NativeBenchOptions {
  readonly provider?: EnvironmentProvider;
  readonly files?: FolderFiles;
  /** The backend's own. */
  readonly options?: Readonly<Record<string, unknown>>;
  /** Replaces the registry's agents. */
  readonly resolveAgent?: AgentResolver;
  readonly openEngine?: EngineOpener;
  readonly logger?: Logger;
  /** What is said of every task that is found. */
  readonly taskWarnings?: readonly string[];
  /** Absent = one of its own, which goes with the bench. */
  readonly dataDir?: string;
}

export interface NativeBench extends AsyncDisposable {
  readonly backend: NativeBackend;
  readonly taskDir: string;
  readonly dataDir: string;
}

/** Ports that make trials on a provider of the test, and find local tasks only. */
export function portsOn(
  provider: EnvironmentProvider,
  over: Pick<NativeBenchOptions, 'resolveAgent' | 'openEngine' | 'taskWarnings'> = {},
): NativePorts {
  return {
    loadSkills: (sources) =>
      sources.length === 0
        ? Promise.resolve([])
        : Promise.reject(new RolloutError('REFERENCE_INVALID', 'no skills', { phase: 'resolve' })),
    openTrials: () =>
      Promise.resolve({
        hasHostEndpoint: provider.capabilities.hostEndpoint,
        createTrial: (request, hooks) =>
          createTrial(request, {
            provider,
            openEngine: over.openEngine ?? openEngine,
            resolveAgent: over.resolveAgent ?? resolveAgent,
            clock: systemClock,
            logger: silentLogger,
            hostVariables: {},
            storeId: 'tests',
            runId: 'tests-run',
            ...hooks,
          }),
        [Symbol.asyncDispose]: () => Promise.resolve(),
      }),
    findTask: (entry) => {
      const dir = entry.path ?? '';
      if (entry.path === null)
        throw new RolloutError('REGISTRY_NOT_CONFIGURED', 'no registry', { phase: 'resolve' });
      const lock = { name: 'a-task', version: null, type: 'local' as const, digest: 'sha256:0' };
      return Promise.resolve({
        warnings: over.taskWarnings ?? [],
        task: {
          entry,
          name: path.basename(dir),
          taskId: { path: dir },
          load: async (signal) => ({
            task: await loadTask({ dir, signal, isVerificationEnabled: true }),
            checksum: 'checksum',
            taskLock: { ...lock, source: null, path: dir, git_url: null, git_commit_id: null },
          }),
        },
      });
    },
  };
}

export async function nativeBench(options: NativeBenchOptions = {}): Promise<NativeBench> {
  const provider = options.provider ?? new FakeProvider();
  const task = await taskFolder(options.files ?? answerTask);
  const dataDir = options.dataDir ?? (await mkdtemp(path.join(os.tmpdir(), 'slipway-native-')));
  const backend = new NativeBackend(
    { agent: 'oracle', environment: provider.kind, ...options.options },
    {
      ports: portsOn(provider, options),
      limits: { maxConcurrent: 8, maxQueueDepth: 8 },
      dataDir,
      baseDir: path.dirname(task.dir),
      clock: systemClock,
      logger: options.logger ?? silentLogger,
    },
  );
  await backend.start(never);
  return {
    backend,
    taskDir: task.dir,
    dataDir,
    [Symbol.asyncDispose]: async () => {
      await backend.close();
      await task[Symbol.asyncDispose]();
      await rm(dataDir, { recursive: true, force: true });
    },
  };
}

export function requestFor(
  taskDir: string | null,
  over: Partial<ExecutionRequest> = {},
): ExecutionRequest {
  return {
    id: 'tenant::r/1'.replace('/', '-'),
    prompt: [],
    label: 'a label',
    metadata: taskDir === null ? {} : { harbor_task: taskDir },
    agentTimeoutMs: null,
    graderTimeoutMs: null,
    queuedMs: 0,
    route: { baseUrl: 'http://127.0.0.1:9/v1', apiKey: 'route-key-1234' },
    wantsGrade: true,
    secrets: ['route-key-1234'],
    ...over,
  };
}

/** Hooks that write down what they are told, in order. */
export class HeardHooks implements ExecutionHooks {
  readonly heard: string[] = [];
  readonly completed: ExecutionResult[] = [];
  readonly progresses: RolloutProgress[] = [];

  agentBegins(): Promise<void> {
    this.heard.push('agent begins');
    return Promise.resolve();
  }

  progress(progress: RolloutProgress): void {
    this.progresses.push(progress);
    this.heard.push(progress.stage);
  }

  workflowCompleted(result: ExecutionResult): Promise<void> {
    this.completed.push(result);
    this.heard.push('completed');
    return Promise.resolve();
  }
}
