/** Runs a user's `AgentWorkflow` and `Grader`: TypeScript or JavaScript in worker threads, Python in processes; one rollout in each at a time. */
import path from 'node:path';
import { folderName } from '../../archive/folder-name.ts';
import type { Clock } from '../../core/clock.ts';
import { RolloutError } from '../../core/errors.ts';
import type { Logger } from '../../core/logger.ts';
import { raceSignal } from '../../core/race-signal.ts';
import type {
  Execution,
  ExecutionBackend,
  ExecutionHooks,
  ExecutionRequest,
} from '../execution-backend.ts';
import { RolloutFolders } from '../shared/rollout-folders.ts';
import type { PythonInterpreter } from '../../runner/interpreter.ts';
import { LocalExecution } from './local-execution.ts';
import { compileLocalOptions, type LocalOptions } from './local-options.ts';
import { processesFor } from './python-worker.ts';
import type { WorkerKind } from './rollout-worker.ts';
import { threadsFor } from './thread-worker.ts';
import { WorkerPool } from './worker-pool.ts';

export interface LocalBackendParts {
  readonly limits: { readonly maxConcurrent: number; readonly maxQueueDepth: number };
  /** Artifacts of running rollouts are in `trials/` of it. */
  readonly dataDir: string;
  /** Where relative module paths begin. */
  readonly baseDir: string;
  /** For Python, with the variables that it is started with. */
  readonly interpreter: PythonInterpreter;
  readonly variables: Readonly<Record<string, string | undefined>>;
  readonly clock: Clock;
  readonly logger: Logger;
}

export class LocalBackend implements ExecutionBackend {
  readonly kind = 'local';
  readonly capturesFinalResult = false;
  readonly #options: LocalOptions;
  readonly #parts: LocalBackendParts;
  readonly #pool: WorkerPool;
  readonly #live = new Set<LocalExecution>();
  readonly #folders: RolloutFolders;
  #closed: Promise<void> | null = null;

  /** CONFIG_INVALID lists every option that is wrong. */
  constructor(options: Readonly<Record<string, unknown>>, parts: LocalBackendParts) {
    this.#options = compileLocalOptions(options, parts);
    this.#parts = parts;
    this.#folders = new RolloutFolders(path.join(parts.dataDir, 'trials'), folderName);
    this.#pool = new WorkerPool(workersFor(this.#options, parts), parts.limits.maxConcurrent);
  }

  health(): Readonly<Record<string, unknown>> {
    const { maxConcurrent } = this.#parts.limits;
    const { waiting: queued, running } = this.#pool;
    return { status: 'ok', concurrency: { max_concurrent: maxConcurrent, queued, running } };
  }

  /** Loads both classes in a first thread or process. WORKFLOW_INVALID, WORKFLOW_PACKAGE_MISSING, RUNNER_FAILED. */
  async start(signal: AbortSignal): Promise<void> {
    await raceSignal(this.#pool.warm(), signal);
  }

  execute(request: ExecutionRequest, hooks: ExecutionHooks): Execution {
    const execution = new LocalExecution(request, hooks, {
      ...this.#parts,
      trialsDir: path.join(this.#parts.dataDir, 'trials'),
      options: this.#options,
      pool: this.#pool,
      folder: this.#folders.use(request.id),
    });
    this.#live.add(execution);
    const forget = (): boolean => this.#live.delete(execution);
    execution.result.then(forget, forget);
    return execution;
  }

  /** Work folders of a server that died, and those of which the archive could not take everything. */
  async forget(ids: readonly string[]): Promise<void> {
    await this.#folders.forget(ids);
  }

  close(): Promise<void> {
    this.#closed ??= this.#closeNow();
    return this.#closed;
  }

  async #closeNow(): Promise<void> {
    const reason = new RolloutError('SERVER_STOPPING', 'the server ends', { phase: 'server' });
    await Promise.all([...this.#live].map((execution) => execution.abort(reason)));
    await this.#pool.close();
  }
}

function workersFor(
  options: LocalOptions,
  { variables }: Pick<LocalBackendParts, 'variables'>,
): WorkerKind {
  return options.language === 'python'
    ? processesFor(options, variables)
    : threadsFor(options, variables);
}
