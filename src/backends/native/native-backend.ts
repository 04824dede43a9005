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
import { RolloutFolders } from '../shared/rollout-folders.ts';
import { NativeExecution } from './native-execution.ts';
import { compileNativeOptions, type NativeOptions } from './native-options.ts';
import type { NativePorts, NativeTrials } from './native-ports.ts';
import { trialName } from './native-trial-config.ts';
import { noHostEndpoint, optionsOfRows, type OptionsOfRow } from './row-agents.ts';
import { prewarm, removeEarlierPrewarms } from './prewarm.ts';

export interface NativeBackendParts {
  readonly ports: NativePorts;
  readonly limits: { readonly maxConcurrent: number; readonly maxQueueDepth: number };
  /** Trials go to `trials/` in it. */
  readonly dataDir: string;
  /** Absolute: where relative folders of tasks in metadata begin. */
  readonly baseDir: string;
  readonly clock: Clock;
  readonly logger: Logger;
  /** Of this process: some agents would follow them to another service. */
  readonly variables?: Readonly<Record<string, string | undefined>>;
}

export class NativeBackend implements ExecutionBackend {
  readonly kind = 'native';
  readonly capturesFinalResult = true;
  readonly #options: NativeOptions;
  readonly #optionsOf: OptionsOfRow;
  readonly #parts: NativeBackendParts;
  readonly #live = new Map<NativeExecution, Promise<unknown>>();
  readonly #folders: RolloutFolders;
  #trials: NativeTrials | null = null;
  #closed: Promise<void> | null = null;

  /** CONFIG_INVALID lists every option that is wrong. */
  constructor(options: Readonly<Record<string, unknown>>, parts: NativeBackendParts) {
    this.#options = compileNativeOptions(options, parts.variables);
    this.#optionsOf = optionsOfRows(options, this.#options, parts.variables);
    this.#parts = parts;
    this.#folders = new RolloutFolders(path.join(parts.dataDir, 'trials'), trialName);
  }

  health(): Readonly<Record<string, unknown>> {
    const { agent, binding } = this.#options;
    const { maxConcurrent, maxQueueDepth } = this.#parts.limits;
    const isTranslated = !['OpenAI Chat Completions', 'none'].includes(binding.protocol);
    return {
      status: 'ok',
      backend: 'native_harbor',
      agent: agent.name ?? agent.import_path,
      binding: binding.name,
      binding_protocol: binding.protocol,
      protocol_capabilities: isTranslated
        ? ['OpenAI Chat Completions', 'OpenAI Responses', 'Anthropic Messages']
        : ['OpenAI Chat Completions'],
      gateway_routing: isTranslated ? 'header_token' : null,
      evaluation_supported: binding.evaluates,
      training_supported: binding.trains,
      max_concurrency: maxConcurrent,
      max_queue_depth: maxQueueDepth,
    };
  }

  /**
   * Opens the environment, then prepares the tasks of `prewarm`. ENVIRONMENT_UNKNOWN, ENVIRONMENT_UNAVAILABLE, JOURNAL_FAILED; CAPABILITY_UNSUPPORTED
   * for an agent whose calls could not leave the sandbox; AGENT_UNKNOWN; PREWARM_FAILED.
   */
  async start(signal: AbortSignal): Promise<void> {
    const { agent, environment, allowUnsandboxed, binding, prewarm: tasks } = this.#options;
    const { ports, logger, dataDir } = this.#parts;
    if (binding.note !== null && ports.warnsOfBinding !== false)
      logger.log('warn', binding.note, { binding: binding.name });
    const name = agent.name ?? agent.import_path;
    const trials = await ports.openTrials(
      { environment, allowUnsandboxed, ...(name !== null && { agent: name }) },
      signal,
    );
    this.#trials = trials;
    if (binding.callsFromSandbox && !trials.hasHostEndpoint)
      throw noHostEndpoint(binding.name, environment.type ?? '');
    const trialsDir = path.join(dataDir, 'trials');
    await removeEarlierPrewarms(trialsDir, logger);
    if (tasks.length === 0) return;
    await prewarm({ options: this.#options, trials, ports, trialsDir, logger }, signal);
  }

  execute(request: ExecutionRequest, hooks: ExecutionHooks): Execution {
    if (this.#trials === null) throw new TypeError('the backend has not been started');
    const { dataDir, baseDir, clock, logger, ports } = this.#parts;
    const execution = new NativeExecution(request, hooks, {
      options: this.#options,
      optionsOf: this.#optionsOf,
      trials: this.#trials,
      findTask: (entry, signal) => ports.findTask(entry, signal),
      loadSkills: (sources, signal) => ports.loadSkills(sources, signal),
      trialsDir: path.join(dataDir, 'trials'),
      baseDir,
      folder: this.#folders.use(request.id),
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

  async forget(ids: readonly string[]): Promise<void> {
    await this.#folders.forget(ids);
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
