/** Runs a user's `AgentWorkflow` and `Grader`, TypeScript or JavaScript, in worker threads: one rollout per thread at a time. */
import path from 'node:path';
import type { Clock } from '../../core/clock.ts';
import { RolloutError } from '../../core/errors.ts';
import type { Logger } from '../../core/logger.ts';
import { raceAbort } from '../../trial/deadline-scope.ts';
import type {
  Execution,
  ExecutionBackend,
  ExecutionHooks,
  ExecutionRequest,
} from '../execution-backend.ts';
import { LocalExecution } from './local-execution.ts';
import { compileLocalOptions, type LocalOptions } from './local-options.ts';
import { WorkerPool } from './worker-pool.ts';

export interface LocalBackendParts {
  readonly limits: { readonly maxConcurrent: number; readonly maxQueueDepth: number };
  /** Artifacts of running rollouts are in `trials/` of it. */
  readonly dataDir: string;
  /** Where relative module paths begin. */
  readonly baseDir: string;
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
  #closed: Promise<void> | null = null;

  /** CONFIG_INVALID lists every option that is wrong. */
  constructor(options: Readonly<Record<string, unknown>>, parts: LocalBackendParts) {
    this.#options = compileLocalOptions(options, parts.baseDir);
    this.#parts = parts;
    this.#pool = new WorkerPool(this.#options, parts.limits.maxConcurrent);
  }

  health(): Readonly<Record<string, unknown>> {
    const { maxConcurrent } = this.#parts.limits;
    const { waiting: queued, running } = this.#pool;
    return { status: 'ok', concurrency: { max_concurrent: maxConcurrent, queued, running } };
  }

  /** Loads both modules in a first thread. WORKFLOW_INVALID. */
  async start(signal: AbortSignal): Promise<void> {
    await raceAbort(this.#pool.warm(), signal);
  }

  execute(request: ExecutionRequest, hooks: ExecutionHooks): Execution {
    const execution = new LocalExecution(request, hooks, {
      ...this.#parts,
      trialsDir: path.join(this.#parts.dataDir, 'trials'),
      options: this.#options,
      pool: this.#pool,
    });
    this.#live.add(execution);
    const forget = (): boolean => this.#live.delete(execution);
    execution.result.then(forget, forget);
    return execution;
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
