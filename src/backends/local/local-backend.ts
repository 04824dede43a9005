/** Runs a user's `AgentWorkflow` and `Grader`, TypeScript or JavaScript, each rollout in a worker thread of its own. */
import type { Clock } from '../../core/clock.ts';
import type { Logger } from '../../core/logger.ts';
import type {
  Execution,
  ExecutionBackend,
  ExecutionHooks,
  ExecutionRequest,
} from '../execution-backend.ts';

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

  /** CONFIG_INVALID lists every option that is wrong. */
  constructor(_options: Readonly<Record<string, unknown>>, _parts: LocalBackendParts) {}

  health(): Readonly<Record<string, unknown>> {
    throw new Error('not built yet');
  }

  start(_signal: AbortSignal): Promise<void> {
    throw new Error('not built yet');
  }

  execute(_request: ExecutionRequest, _hooks: ExecutionHooks): Execution {
    throw new Error('not built yet');
  }

  close(): Promise<void> {
    throw new Error('not built yet');
  }
}
