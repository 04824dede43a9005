/** One worker thread that carries out orders, one at a time, until it is ended: by itself, by a limit of its heap, or by us. */
import path from 'node:path';
import { MessageChannel, Worker, type MessagePort } from 'node:worker_threads';
import { messageOf, RolloutError } from '../../core/errors.ts';
import type { ThreadOptions } from './local-options.ts';
import { WorkerEnded, type RolloutWorker, type WorkerKind } from './rollout-worker.ts';
import type {
  FromThread,
  ThreadOrder,
  ThreadReport,
  ThreadSettings,
  ToThread,
} from './thread-messages.ts';

/** The same file where sources are compiled and where they are not. */
const entry = new URL(`./rollout-thread${path.extname(import.meta.filename)}`, import.meta.url);

const defaultHeapMb = 512;

/**
 * Bound of the heap's young part. At the limit Node asks for the end of the thread and grants 16 MB more until the code heeds it;
 * what one collection moves out of the young part must fit there, or V8 ends the whole process.
 */
const youngHeapMb = 8;

/** The threads' `process.env` are the variables. */
export function threadsFor(
  options: ThreadOptions,
  variables: Readonly<Record<string, string | undefined>>,
): WorkerKind {
  // To a thread `undefined` would be a text.
  const env = Object.fromEntries(
    Object.entries(variables).filter(([, value]) => value !== undefined),
  );
  return { noun: 'thread', make: (onGone) => new ThreadWorker({ ...options, env }, onGone) };
}

class ThreadWorker implements RolloutWorker {
  readonly #worker: Worker;
  readonly #port: MessagePort;
  readonly #ready = Promise.withResolvers<undefined>();
  readonly #onGone: () => void;
  #run = 0;
  #ended: PromiseWithResolvers<ThreadReport> | null = null;
  #fault: string | null = null;
  #isGone = false;
  #onPrint: ((text: string) => void) | null = null;

  /** `onGone` is called once, when the thread has ended. */
  constructor(options: ThreadOptions & { readonly env: NodeJS.ProcessEnv }, onGone: () => void) {
    this.#onGone = onGone;
    const { port1, port2 } = new MessageChannel();
    this.#port = port1;
    const { workflow, grader } = options;
    const workerData: ThreadSettings = { workflow, grader, port: port2 };
    this.#worker = new Worker(entry, {
      workerData,
      transferList: [port2],
      name: 'rollout',
      execArgv: [],
      env: options.env,
      stdout: true,
      stderr: true,
      resourceLimits: {
        maxOldGenerationSizeMb: options.memoryMb ?? defaultHeapMb,
        maxYoungGenerationSizeMb: youngHeapMb,
      },
    });
    port1.on('message', (message: FromThread) => this.#hear(message));
    this.#worker.on('error', (error) => (this.#fault = describeFault(error)));
    this.#worker.on('exit', (code) => this.#end(code));
    for (const stream of [this.#worker.stdout, this.#worker.stderr])
      stream.setEncoding('utf8').on('data', (text: string) => this.#onPrint?.(text));
    this.#ready.promise.catch(() => undefined);
  }

  get ready(): Promise<void> {
    return this.#ready.promise;
  }

  get isGone(): boolean {
    return this.#isGone;
  }

  set onPrint(listener: ((text: string) => void) | null) {
    this.#onPrint = listener;
  }

  async carryOut(order: ThreadOrder): Promise<ThreadReport> {
    this.#run += 1;
    const ended = Promise.withResolvers<ThreadReport>();
    this.#ended = ended;
    if (this.#isGone) throw new WorkerEnded(this.#fault ?? 'has ended');
    this.#send({ kind: 'run', run: this.#run, order });
    return await ended.promise;
  }

  cancel(reason: string): void {
    this.#send({ kind: 'cancel', run: this.#run, reason });
  }

  async terminate(): Promise<void> {
    await this.#worker.terminate();
    this.#end(1);
  }

  #send(message: ToThread): void {
    this.#port.postMessage(message);
  }

  #hear(message: FromThread): void {
    switch (message.kind) {
      case 'ready':
        this.#ready.resolve(undefined);
        break;
      case 'broken':
        this.#ready.reject(invalid(message.message));
        void this.terminate();
        break;
      case 'ended':
        if (message.report.run === this.#run) this.#ended?.resolve(message.report);
    }
  }

  #end(code: number): void {
    if (this.#isGone) return;
    this.#isGone = true;
    this.#port.close();
    this.#onGone();
    const why = this.#fault ?? `ended its thread with exit code ${code}`;
    this.#ready.reject(invalid(`the module ${why}`));
    this.#ended?.reject(new WorkerEnded(why));
  }
}

function invalid(why: string): RolloutError {
  return new RolloutError('WORKFLOW_INVALID', why, {
    phase: 'config',
    field: 'backend.local',
    remedy: 'Correct the module, or its name: path/to/module.ts:ExportedClass.',
  });
}

function describeFault(error: unknown): string {
  const { code } = error as NodeJS.ErrnoException;
  return code === 'ERR_WORKER_OUT_OF_MEMORY'
    ? 'ran out of memory'
    : `failed outside of its run: ${messageOf(error)}`;
}
