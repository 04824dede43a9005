/**
 * A backend in a process of its own. Starting programs holds up the thread that does it, for the longer the larger its process is, and trials start many: the
 * server answers beside them. What a backend takes and gives is plain data; calls have numbers, executions have keys.
 */
import { fork, type ChildProcess } from 'node:child_process';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import type {
  AbortReceipt,
  ArchivedFiles,
  Execution,
  ExecutionBackend,
  ExecutionHooks,
  ExecutionProbe,
  ExecutionRequest,
  ExecutionResult,
} from '../../backends/execution-backend.ts';
import type { Clock } from '../../core/clock.ts';
import { errorOf, faultOf } from '../../core/error-fault.ts';
import { isRolloutError, messageOf, RolloutError } from '../../core/errors.ts';
import { LinkedAbort, never } from '../../core/linked-abort.ts';
import type { Logger } from '../../core/logger.ts';
import { noteBackend } from './left-processes.ts';
import { AskedPrecedence } from './processor-share.ts';
import type {
  BackendAnswer,
  BackendCall,
  BackendFacts,
  BackendTask,
  FromBackend,
  ToBackend,
} from './backend-messages.ts';

/** The same file where sources are compiled and where they are not. */
const entry = new URL(`./backend-process${path.extname(import.meta.filename)}`, import.meta.url);
const isGone = 'the process of the backend is gone';
/** A process that is to end is asked this often whether it still works, and is stuck when it has not answered for so long. */
const pingEveryMs = 5_000;
const stuckMs = 15_000;

export interface ProcessBackendParts {
  readonly clock: Clock;
  readonly logger: Logger;
  /** The process has ended, and nobody asked it to: no rollout can be executed any more. */
  readonly onLost: (reason: RolloutError) => void;
  /** Another program, for proofs that break it on purpose. */
  readonly entry?: URL;
}

export class ProcessBackend implements ExecutionBackend {
  readonly #child: ChildProcess;
  readonly #parts: ProcessBackendParts;
  readonly #executions = new Map<number, ProcessExecution>();
  readonly #calls = new Map<number, PromiseWithResolvers<BackendAnswer>>();
  readonly #made = Promise.withResolvers<undefined>();
  readonly #exited = Promise.withResolvers<undefined>();
  readonly #precedence: AskedPrecedence;
  #facts: BackendFacts | null = null;
  #lastNumber = 0;
  #fault: string | null = null;
  #lost: RolloutError | null = null;
  #closed: Promise<void> | null = null;

  private constructor(child: ChildProcess, parts: ProcessBackendParts) {
    this.#child = child;
    this.#parts = parts;
    this.#precedence = new AskedPrecedence(`/proc/${child.pid ?? 0}/autogroup`);
    child.on('message', (message) => this.#hear(message as FromBackend)); // `backend-process.ts` says nothing else
    child.on('error', (error) => {
      this.#fault = messageOf(error);
      if (child.pid === undefined) this.#exit('it was not started');
    });
    child.on('exit', (code, signal) => {
      const how = signal === null ? `it ended with code ${code}` : `it was ended by ${signal}`;
      // Its last words may still be on their way.
      if (child.connected) child.once('disconnect', () => this.#exit(how));
      else this.#exit(how);
    });
  }

  /** Resolves when the backend is made: CONFIG_INVALID, BACKEND_UNKNOWN, as if it had been made here. */
  static async open(task: BackendTask, parts: ProcessBackendParts): Promise<ProcessBackend> {
    const child = fork(fileURLToPath(parts.entry ?? entry), [], {
      // A session of its own, with a share of the processor of its own.
      ...{ serialization: 'advanced', execArgv: [], detached: true },
      // What it prints is for people: the server's own output may be read by a program.
      stdio: ['ignore', 2, 2, 'ipc'],
    });
    const backend = new ProcessBackend(child, parts);
    try {
      if (child.pid !== undefined) await noteBackend(task.config.dataDir, child.pid);
      backend.#send({ kind: 'make', task });
      await backend.#made.promise;
      return backend;
    } catch (error) {
      backend.#closed = Promise.resolve();
      await backend.#end();
      throw error;
    }
  }

  get kind(): string {
    return this.#known.kind;
  }

  get capturesFinalResult(): boolean {
    return this.#known.capturesFinalResult;
  }

  /** As it was after the start. */
  health(): Readonly<Record<string, unknown>> {
    return this.#known.health;
  }

  async start(signal: AbortSignal): Promise<void> {
    this.#facts = (await this.#call({ name: 'start' }, signal)) as BackendFacts;
  }

  execute(request: ExecutionRequest, hooks: ExecutionHooks): Execution {
    this.#lastNumber += 1;
    const key = this.#lastNumber;
    const execution = new ProcessExecution(request.id, hooks, {
      abort: (reason) => this.#abort(key, reason),
      release: async (archived) => {
        try {
          await this.#call({ name: 'release', key, archived });
        } finally {
          this.#executions.delete(key);
        }
      },
    });
    // It has not begun, and stays so: the next life of the server runs it.
    if (this.#lost !== null) return execution;
    this.#executions.set(key, execution);
    this.#send({ kind: 'execute', key, request });
    return execution;
  }

  /** Somebody waits for it, and its process may be one of dozens that want to run. */
  async #abort(key: number, reason: Error): Promise<AbortReceipt | null> {
    const asked = this.#lost === null ? this.#precedence.ask() : null;
    try {
      const call = { name: 'abort', key, reason: faultOf(reason) } as const;
      return (await this.#call(call)) as AbortReceipt | null;
    } finally {
      asked?.[Symbol.dispose]();
    }
  }

  async probe(id: string, signal: AbortSignal): Promise<ExecutionProbe | null> {
    if (!this.#known.canProbe || this.#lost !== null) return null;
    return (await this.#call({ name: 'probe', id }, signal)) as ExecutionProbe | null;
  }

  async forget(ids: readonly string[]): Promise<void> {
    if (this.#known.canForget) await this.#call({ name: 'forget', ids });
  }

  close(): Promise<void> {
    this.#closed ??= this.#lost === null ? this.#closeNow() : Promise.resolve();
    return this.#closed;
  }

  async #closeNow(): Promise<void> {
    using looking = new LinkedAbort([]);
    const closing = this.#call({ name: 'close' });
    closing.catch(() => undefined); // of a process that is killed
    try {
      await Promise.race([closing, this.#stuck(looking.signal)]);
    } finally {
      looking.abort(new Error('the process ends'));
      await this.#end();
    }
  }

  /** Whatever it did is over; SIGKILL is what a process cannot be too busy for. */
  async #end(): Promise<void> {
    this.#child.kill('SIGKILL');
    await this.#exited.promise;
  }

  /** Resolves when the process is stuck, which it tells. However long ending takes, a process that works answers. */
  async #stuck(signal: AbortSignal): Promise<void> {
    const { clock, logger } = this.#parts;
    const isOver = (): boolean => signal.aborted;
    const paused = (ms: number): Promise<void> => clock.sleep(ms, signal).catch(() => undefined);
    for (;;) {
      const answered = this.#call({ name: 'ping' }).then(
        () => true,
        () => true, // it has ended
      );
      if (!(await Promise.race([answered, paused(stuckMs).then(isOver)]))) break;
      if (isOver()) return;
      await paused(pingEveryMs);
    }
    logger.log('error', 'the process of the backend is stuck: it was killed', {
      rollouts: [...this.#executions.values()].map(({ rolloutId }) => rolloutId),
      remedy: 'Sandboxes that it left are removed by the next start, or by slipway cleanup.',
    });
  }

  get #known(): BackendFacts {
    if (this.#facts === null) throw new TypeError('the backend has not been made');
    return this.#facts;
  }

  async #call(call: BackendCall, signal: AbortSignal = never): Promise<BackendAnswer> {
    signal.throwIfAborted();
    if (this.#lost !== null) throw this.#lost;
    this.#lastNumber += 1;
    const number = this.#lastNumber;
    const waiting = Promise.withResolvers<BackendAnswer>();
    this.#calls.set(number, waiting);
    const giveUp = (): void =>
      this.#send({ kind: 'give up', number, reason: faultOf(signal.reason) });
    signal.addEventListener('abort', giveUp, { once: true });
    try {
      this.#send({ kind: 'call', number, call });
      return await waiting.promise;
    } catch (error) {
      // What fired here is told as itself, not as its copy.
      signal.throwIfAborted();
      throw error;
    } finally {
      signal.removeEventListener('abort', giveUp);
      this.#calls.delete(number);
    }
  }

  #send(message: ToBackend): void {
    // One that has ended says so by its exit.
    this.#child.send(message, () => undefined);
  }

  #hear(message: FromBackend): void {
    switch (message.kind) {
      case 'several':
        for (const one of message.messages) this.#hear(one);
        break;
      case 'made':
        this.#facts = message.facts;
        this.#made.resolve(undefined);
        break;
      case 'failed':
        this.#made.reject(errorOf(message.fault));
        break;
      case 'answer':
        this.#calls.get(message.number)?.resolve(message.value);
        break;
      case 'refusal':
        this.#calls.get(message.number)?.reject(errorOf(message.fault));
        break;
      case 'progress':
        this.#executions.get(message.key)?.hooks.progress(message.progress);
        break;
      case 'hook':
        void this.#hook(message);
        break;
      case 'ended':
        this.#executions.get(message.key)?.end(message.result);
        break;
      case 'broken':
        this.#executions.get(message.key)?.fail(errorOf(message.fault));
        break;
      case 'crashed':
        this.#fault = message.why;
        break;
      case 'log':
        this.#parts.logger.log(message.level, message.message, message.fields);
    }
  }

  async #hook({
    number,
    key,
    result,
  }: Extract<FromBackend, { readonly kind: 'hook' }>): Promise<void> {
    try {
      const hooks = this.#executions.get(key)?.hooks;
      if (hooks === undefined) throw new TypeError('the execution has been released');
      await (result === null ? hooks.agentBegins() : hooks.workflowCompleted(result));
      this.#send({ kind: 'hooked', number, fault: null });
    } catch (error) {
      this.#send({ kind: 'hooked', number, fault: faultOf(error) });
    }
  }

  #exit(how: string): void {
    this.#exited.resolve(undefined);
    const why = this.#fault ?? how;
    const lost = new RolloutError('BACKEND_LOST', `${isGone}: ${why}`, {
      phase: 'server',
      remedy: 'Start the server again: what was accepted is on disk.',
    });
    this.#lost = lost;
    // Why is the operator's to know: the words of a defect may hold anything.
    const told = new RolloutError('BACKEND_LOST', isGone, { phase: 'server' });
    this.#made.reject(lost);
    for (const { reject } of this.#calls.values()) reject(lost);
    for (const execution of this.#executions.values()) execution.fail(told);
    if (this.#closed === null) this.#parts.onLost(lost);
  }
}

interface ExecutionCalls {
  abort(reason: Error): Promise<AbortReceipt | null>;
  release(archived: ArchivedFiles | null): Promise<void>;
}

class ProcessExecution implements Execution {
  readonly rolloutId: string;
  readonly hooks: ExecutionHooks;
  readonly #calls: ExecutionCalls;
  readonly #result = Promise.withResolvers<ExecutionResult>();
  #receipt: Promise<AbortReceipt> | null = null;

  constructor(rolloutId: string, hooks: ExecutionHooks, calls: ExecutionCalls) {
    this.rolloutId = rolloutId;
    this.hooks = hooks;
    this.#calls = calls;
    this.#result.promise.catch(() => undefined); // nobody looks at it after an abort
  }

  get result(): Promise<ExecutionResult> {
    return this.#result.promise;
  }

  end(result: ExecutionResult): void {
    this.#result.resolve(result);
  }

  fail(error: Error): void {
    this.#result.reject(error);
  }

  abort(reason: Error): Promise<AbortReceipt> {
    this.#receipt ??= this.#abortNow(reason);
    return this.#receipt;
  }

  async #abortNow(reason: Error): Promise<AbortReceipt> {
    const gone = (problem: string): AbortReceipt => ({
      ...{ stage: 'gone', processesKilled: 0, confirmedGone: [], isComplete: false, problem },
    });
    try {
      return (await this.#calls.abort(reason)) ?? gone('the backend does not know it');
    } catch (error) {
      return gone(isRolloutError(error, 'BACKEND_LOST') ? isGone : messageOf(error));
    }
  }

  async release(archived?: ArchivedFiles): Promise<void> {
    await this.#calls.release(archived ?? null);
  }
}
