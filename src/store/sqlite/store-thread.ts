import { Worker } from 'node:worker_threads';
import { isRolloutError, messageOf, RolloutError } from '../../core/errors.ts';
import { errorOf } from '../../core/error-fault.ts';
import { writes, type Answer, type Argument, type CallName } from './store-calls.ts';
import type {
  CallMessage,
  CommitFigures,
  FromWorker,
  ToWorker,
  WorkerTask,
} from './worker-messages.ts';

interface Waiting {
  readonly resolve: (value: Answer<CallName>) => void;
  readonly reject: (error: Error) => void;
}

export interface ThreadListeners {
  readonly onEvents: () => void;
  readonly onCommit: (commit: CommitFigures) => void;
  /** It ended after it was open, and nobody closed it: also when the file is damaged. */
  readonly onLost: (reason: Error) => void;
}

/** How long news that nobody's result depends on may wait for somebody else's sync. */
const lazyMs = 100;
/** Of them, so that a message never grows long. */
const mostHeld = 256;

/**
 * This side of the thread that owns the file: calls go over in order, answers come back by number. Every message wakes the thread, and so do its answers this
 * one: what is called in one turn of the loop goes over together, and a call that may wait goes over with the next write that may not.
 */
export class StoreThread {
  readonly #worker: Worker;
  readonly #onEvents: () => void;
  readonly #onCommit: (commit: CommitFigures) => void;
  readonly #waiting = new Map<number, Waiting>();
  #lastNumber = 0;
  /** May wait for another call. */
  #held: CallMessage[] = [];
  #timer: NodeJS.Timeout | null = null;
  /** Goes over at the end of this turn of the loop. */
  #called: CallMessage[] = [];
  #turnEnd: NodeJS.Immediate | null = null;
  #closing: Promise<void> | null = null;
  /** Why no call can be answered any more; null = it runs. */
  #ended: RolloutError | null = null;
  readonly #exit = Promise.withResolvers<undefined>();

  private constructor(worker: Worker, { onEvents, onCommit }: ThreadListeners) {
    this.#worker = worker;
    this.#onEvents = onEvents;
    this.#onCommit = onCommit;
  }

  /** Resolves when the file is open and of the newest version; `copy` = where the state before an upgrade was kept. */
  static async start(
    task: WorkerTask,
    options: ThreadListeners & { readonly signal: AbortSignal },
  ): Promise<{ readonly thread: StoreThread; readonly copy: string | null }> {
    const { signal } = options;
    signal.throwIfAborted();
    const worker = new Worker(workerFile('store-worker'), { workerData: task, name: 'store' });
    const thread = new StoreThread(worker, options);
    const opened = Promise.withResolvers<string | null>();
    const onAbort = (): void => opened.reject(signal.reason as Error);
    signal.addEventListener('abort', onAbort, { once: true });
    worker.on('message', (message: FromWorker) => {
      if (message.kind === 'open') opened.resolve(message.copy);
      else if (message.kind === 'failed') opened.reject(errorOf(message.fault));
      else thread.#settle(message);
    });
    worker.on('error', (error) => {
      thread.#end(`the thread of the store failed: ${messageOf(error)}`);
    });
    let isOpen = false;
    worker.on('exit', () => {
      const reason = thread.#end('the store is closed');
      opened.reject(reason);
      thread.#exit.resolve(undefined);
      if (isOpen && thread.#closing === null) options.onLost(reason);
    });
    try {
      const copy = await opened.promise;
      isOpen = true;
      return { thread, copy };
    } catch (error) {
      await worker.terminate();
      throw error;
    } finally {
      signal.removeEventListener('abort', onAbort);
    }
  }

  /** `isLazy`: it may wait for another call's sync. */
  async call<Name extends CallName>(
    name: Name,
    argument: Argument<Name>,
    { isLazy = false }: { readonly isLazy?: boolean } = {},
  ): Promise<Answer<Name>> {
    if (this.#ended !== null) throw this.#ended;
    if (this.#closing !== null) throw closed('the store is closed');
    this.#lastNumber += 1;
    const { promise, resolve, reject } = Promise.withResolvers<Answer<CallName>>();
    const message: CallMessage<Name> = { number: this.#lastNumber, name, argument };
    this.#waiting.set(message.number, { resolve, reject });
    if (isLazy && this.#held.length < mostHeld) {
      this.#held.push(message);
      this.#timer ??= setTimeout(() => this.#post(this.#takeAll()), lazyMs);
    } else {
      // What only reads syncs nothing that others could share.
      if (writes.has(name)) this.#called.push(...this.#takeHeld());
      this.#called.push(message);
      this.#turnEnd ??= setImmediate(() => this.#post(this.#takeCalled()));
    }
    return (await promise) as Answer<Name>; // the answer with the number of this call
  }

  /** Everything that was called before is written first. Idempotent. */
  close(): Promise<void> {
    if (this.#closing === null && this.#ended === null) {
      this.#post([...this.#takeAll(), { kind: 'close' }]);
    }
    this.#closing ??= this.#exit.promise;
    return this.#closing;
  }

  #post(messages: ToWorker): void {
    try {
      this.#worker.postMessage(messages);
    } catch (error) {
      // An argument that cannot cross fails its own call only.
      if (messages.length > 1) for (const one of messages) this.#post([one]);
      else for (const one of messages) if ('number' in one) this.#refuse(one.number, error);
    }
  }

  #refuse(number: number, error: unknown): void {
    this.#waiting.get(number)?.reject(error as Error);
    this.#waiting.delete(number);
  }

  #settle({ answers, hasEvents, commit }: Extract<FromWorker, { readonly kind: 'answers' }>): void {
    for (const answer of answers) {
      const waiting = this.#waiting.get(answer.number);
      this.#waiting.delete(answer.number);
      if ('fault' in answer) {
        const error = errorOf(answer.fault);
        waiting?.reject(error);
        if (isRolloutError(error, 'STORE_DAMAGED')) this.#damaged(error);
      } else waiting?.resolve(answer.value);
    }
    if (hasEvents) this.#onEvents();
    if (commit !== null) this.#onCommit(commit);
  }

  /** Nothing more is written to such a file: what its log holds stays there for whoever repairs it. */
  #damaged(error: RolloutError): void {
    this.#ended ??= error;
    this.#takeAll();
    void this.#worker.terminate();
  }

  /** Calls of this turn first: what is held was called after the last write of them. */
  #takeAll(): readonly CallMessage[] {
    return [...this.#takeCalled(), ...this.#takeHeld()];
  }

  #takeCalled(): readonly CallMessage[] {
    if (this.#turnEnd !== null) clearImmediate(this.#turnEnd);
    this.#turnEnd = null;
    const called = this.#called;
    this.#called = [];
    return called;
  }

  #takeHeld(): readonly CallMessage[] {
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#timer = null;
    const held = this.#held;
    this.#held = [];
    return held;
  }

  #end(why: string): RolloutError {
    this.#ended ??= closed(why);
    this.#takeAll();
    for (const { reject } of this.#waiting.values()) reject(this.#ended);
    this.#waiting.clear();
    return this.#ended;
  }
}

/** A worker's file beside this one: a source in a checkout, built in the package. */
export function workerFile(name: string): URL {
  const suffix = import.meta.url.endsWith('.ts') ? '.ts' : '.js';
  return new URL(`./${name}${suffix}`, import.meta.url);
}

function closed(why: string): RolloutError {
  return new RolloutError('STORE_FAILED', why, { phase: 'server' });
}
