/** Rollouts of the backend `local` without a server. */
import { LocalBackend } from '../../../src/backends/local/local-backend.ts';
import type {
  ExecutionHooks,
  ExecutionRequest,
  ExecutionResult,
} from '../../../src/backends/execution-backend.ts';
import { systemClock } from '../../../src/core/clock.ts';
import { silentLogger, type Logger } from '../../../src/core/logger.ts';

/** The machine's own Python. */
export const systemPython = {
  interpreter: { python: 'python3', path: [] },
  variables: process.env,
};

export function localBackend(
  options: Readonly<Record<string, unknown>>,
  {
    dataDir,
    maxConcurrent = 3,
    ...over
  }: {
    readonly dataDir: string;
    readonly maxConcurrent?: number;
    readonly logger?: Logger;
  } & Partial<typeof systemPython>,
): LocalBackend {
  return new LocalBackend(options, {
    limits: { maxConcurrent, maxQueueDepth: 3 },
    ...{ dataDir, baseDir: dataDir, clock: systemClock, logger: silentLogger },
    ...systemPython,
    ...over,
  });
}

let count = 0;
export const requestOf = (over: Partial<ExecutionRequest> = {}): ExecutionRequest => ({
  id: `r-${++count}`,
  prompt: [{ role: 'user', content: 'hello', own: { key: 1 } }],
  label: null,
  metadata: {},
  agentTimeoutMs: 120_000,
  graderTimeoutMs: 120_000,
  queuedMs: 0,
  route: { baseUrl: 'http://127.0.0.1:1/v1', apiKey: 'route-key-1234' },
  wantsGrade: true,
  secrets: ['route-key-1234'],
  ...over,
});

export interface Told {
  readonly begun: string[];
  readonly completed: ExecutionResult[];
  readonly stages: string[];
}

export function listening(): { readonly told: Told; readonly hooks: ExecutionHooks } {
  const told: Told = { begun: [], completed: [], stages: [] };
  return {
    told,
    hooks: {
      agentBegins: () => {
        told.begun.push('begun');
        return Promise.resolve();
      },
      progress: ({ stage }) => told.stages.push(stage),
      workflowCompleted: (result) => {
        told.completed.push(result);
        return Promise.resolve();
      },
    },
  };
}

export async function runOn(backend: LocalBackend, over: Partial<ExecutionRequest>) {
  const { told, hooks } = listening();
  const execution = backend.execute(requestOf(over), hooks);
  const result = await execution.result;
  return { execution, result, told };
}
