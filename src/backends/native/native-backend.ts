/** Runs one Harbor trial per rollout: the task brings instruction, environment and verifier, the controller the model. */
import type { Clock } from '../../core/clock.ts';
import type { Logger } from '../../core/logger.ts';
import type {
  Execution,
  ExecutionBackend,
  ExecutionHooks,
  ExecutionRequest,
} from '../execution-backend.ts';
import type { NativePorts } from './native-ports.ts';

export interface NativeBackendParts {
  readonly ports: NativePorts;
  readonly limits: { readonly maxConcurrent: number; readonly maxQueueDepth: number };
  /** Trials go to `trials/` in it. */
  readonly dataDir: string;
  readonly clock: Clock;
  readonly logger: Logger;
}

export class NativeBackend implements ExecutionBackend {
  readonly kind = 'native';
  readonly capturesFinalResult = true;

  /** CONFIG_INVALID lists every option that is wrong. */
  constructor(_options: Readonly<Record<string, unknown>>, _parts: NativeBackendParts) {}

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
