/**
 * No agent, no sandbox: rollouts end as `metadata.null` says. For trying out a controller, and for measuring the server alone. Rewards are what the
 * request itself asks for.
 */
import type { Clock } from '../../core/clock.ts';
import { RolloutError } from '../../core/errors.ts';
import type {
  Execution,
  ExecutionBackend,
  ExecutionHooks,
  ExecutionRequest,
} from '../execution-backend.ts';
import { NullExecution } from './null-execution.ts';

export interface NullBackendParts {
  readonly limits: { readonly maxConcurrent: number; readonly maxQueueDepth: number };
  readonly clock: Clock;
  /** For the calls that `agent_calls` asks for. */
  readonly fetch?: typeof fetch;
}

export class NullBackend implements ExecutionBackend {
  readonly kind = 'null';
  readonly capturesFinalResult = false;
  readonly #parts: NullBackendParts;
  readonly #running = new Set<NullExecution>();

  /** CONFIG_INVALID: it has no options. */
  constructor(options: Readonly<Record<string, unknown>>, parts: NullBackendParts) {
    const [unknown] = Object.keys(options);
    if (unknown !== undefined)
      throw new RolloutError('CONFIG_INVALID', 'the null backend has no options', {
        ...{ phase: 'config', field: `backend.null.${unknown}` },
        remedy: 'Remove it; metadata.null of a request says what a rollout does.',
      });
    this.#parts = parts;
  }

  health(): Readonly<Record<string, unknown>> {
    const { maxConcurrent, maxQueueDepth } = this.#parts.limits;
    return {
      ...{ status: 'ok', backend: 'null', running: this.#running.size },
      ...{ max_concurrency: maxConcurrent, max_queue_depth: maxQueueDepth },
    };
  }

  start(signal: AbortSignal): Promise<void> {
    return signal.aborted ? Promise.reject(signal.reason as Error) : Promise.resolve();
  }

  execute(request: ExecutionRequest, hooks: ExecutionHooks): Execution {
    const { clock } = this.#parts;
    const execution = new NullExecution(request, hooks, {
      clock,
      fetch: this.#parts.fetch ?? fetch,
    });
    this.#running.add(execution);
    const forget = (): void => void this.#running.delete(execution);
    execution.result.then(forget, forget);
    return execution;
  }

  async close(): Promise<void> {
    const reason = new RolloutError('SERVER_STOPPING', 'the server is shutting down', {
      phase: 'server',
    });
    await Promise.all([...this.#running].map((execution) => execution.abort(reason)));
  }
}
