/** Runs one Harbor trial per rollout: the task brings instruction, environment and verifier, the controller the model. */
import path from 'node:path';
import type { Clock } from '../../core/clock.ts';
import { RolloutError } from '../../core/errors.ts';
import type { Logger } from '../../core/logger.ts';
import type {
  Execution,
  ExecutionBackend,
  ExecutionHooks,
  ExecutionProbe,
  ExecutionRequest,
} from '../execution-backend.ts';
import { NativeExecution } from './native-execution.ts';
import { compileNativeOptions, type NativeOptions } from './native-options.ts';
import type { NativePorts, NativeTrials } from './native-ports.ts';

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
  readonly #options: NativeOptions;
  readonly #parts: NativeBackendParts;
  readonly #live = new Map<NativeExecution, Promise<unknown>>();
  #trials: NativeTrials | null = null;
  #closed: Promise<void> | null = null;

  /** CONFIG_INVALID lists every option that is wrong. */
  constructor(options: Readonly<Record<string, unknown>>, parts: NativeBackendParts) {
    this.#options = compileNativeOptions(options);
    this.#parts = parts;
  }

  health(): Readonly<Record<string, unknown>> {
    const { agent } = this.#options;
    const { maxConcurrent, maxQueueDepth } = this.#parts.limits;
    const callsModel = agent !== 'oracle';
    return {
      status: 'ok',
      backend: 'native_harbor',
      agent,
      binding: agent,
      binding_protocol: callsModel ? 'OpenAI Chat Completions' : 'none',
      protocol_capabilities: ['OpenAI Chat Completions'],
      gateway_routing: null,
      evaluation_supported: true,
      training_supported: callsModel,
      max_concurrency: maxConcurrent,
      max_queue_depth: maxQueueDepth,
    };
  }

  /** Opens the environment, and removes what dead servers left in it. ENVIRONMENT_UNKNOWN, ENVIRONMENT_UNAVAILABLE, JOURNAL_FAILED. */
  async start(signal: AbortSignal): Promise<void> {
    const { environment, allowUnsandboxed } = this.#options;
    if (this.#options.agent === 'oracle')
      this.#parts.logger.log('warn', 'the oracle calls no model: its rollouts train nothing');
    this.#trials = await this.#parts.ports.openTrials({ environment, allowUnsandboxed }, signal);
  }

  execute(request: ExecutionRequest, hooks: ExecutionHooks): Execution {
    if (this.#trials === null) throw new TypeError('the backend has not been started');
    const { dataDir, clock, logger, ports } = this.#parts;
    const execution = new NativeExecution(request, hooks, {
      options: this.#options,
      trials: this.#trials,
      findTask: (entry, signal) => ports.findTask(entry, signal),
      trialsDir: path.join(dataDir, 'trials'),
      clock,
      logger,
    });
    const forget = (): boolean => this.#live.delete(execution);
    this.#live.set(execution, execution.result.then(forget, forget));
    return execution;
  }

  async probe(id: string, signal: AbortSignal): Promise<ExecutionProbe | null> {
    const execution = [...this.#live.keys()].find((live) => live.id === id);
    return (await execution?.probe(signal)) ?? null;
  }

  close(): Promise<void> {
    this.#closed ??= this.#closeNow();
    return this.#closed;
  }

  async #closeNow(): Promise<void> {
    const reason = new RolloutError('SERVER_STOPPING', 'the server ends', { phase: 'server' });
    const live = [...this.#live];
    await Promise.all(live.map(([execution]) => execution.abort(reason)));
    await Promise.all(live.map(([, ended]) => ended));
    await this.#trials?.[Symbol.asyncDispose]();
  }
}
