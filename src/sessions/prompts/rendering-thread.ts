import path from 'node:path';
import { Worker } from 'node:worker_threads';
import { errorOf, type ErrorFault } from '../../core/error-fault.ts';
import { messageOf } from '../../core/errors.ts';
import type { Conversation, KnownPrefix } from '../codec.ts';
import type { PromptRenderer, PromptSuffix } from './prompt-renderer.ts';

export interface RenderingOptions {
  readonly family: string;
  /** Folder of the checkpoint. */
  readonly tokenizer: string;
  readonly templateFile: string | null;
}

export interface ToRendering {
  readonly number: number;
  readonly conversation: Conversation;
  /** null = all of it is rendered. */
  readonly prefix: KnownPrefix | null;
}

export type FromRendering =
  | { readonly number: number; readonly suffix: PromptSuffix }
  | { readonly number: number; readonly fault: ErrorFault };

/** The same file where sources are compiled and where they are not. */
const entry = new URL(`./rendering-worker${path.extname(import.meta.filename)}`, import.meta.url);

/** This side of the thread that renders long prompts. It is started again where it has died. */
export class RenderingThread implements PromptRenderer, AsyncDisposable {
  readonly #options: RenderingOptions;
  readonly #waiting = new Map<number, PromiseWithResolvers<PromptSuffix>>();
  #worker: Worker | null = null;
  #lastNumber = 0;
  #isClosed = false;

  constructor(options: RenderingOptions) {
    this.#options = options;
  }

  /** Opening its vocabulary takes a second: the first prompt finds it done. */
  begin(): void {
    this.#worker ??= this.#start();
  }

  async render(conversation: Conversation): Promise<Int32Array> {
    const { ids } = await this.#ask(conversation, null);
    return ids;
  }

  async renderSuffix(conversation: Conversation, prefix: KnownPrefix): Promise<PromptSuffix> {
    return await this.#ask(conversation, prefix);
  }

  /** What waits is failed. Idempotent. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#isClosed = true;
    await this.#worker?.terminate();
  }

  async #ask(conversation: Conversation, prefix: KnownPrefix | null): Promise<PromptSuffix> {
    if (this.#isClosed) throw gone('it is closed');
    const worker = (this.#worker ??= this.#start());
    this.#lastNumber += 1;
    const number = this.#lastNumber;
    const waiting = Promise.withResolvers<PromptSuffix>();
    this.#waiting.set(number, waiting);
    worker.postMessage({ number, conversation, prefix } satisfies ToRendering);
    return await waiting.promise;
  }

  #start(): Worker {
    const worker = new Worker(entry, { name: 'prompts', workerData: this.#options });
    // Who waits for a prompt holds a connection, which keeps the process alive.
    worker.unref();
    let why = 'it has ended';
    worker.on('message', (answer: FromRendering) => {
      const waiting = this.#waiting.get(answer.number);
      this.#waiting.delete(answer.number);
      if ('suffix' in answer) waiting?.resolve(answer.suffix);
      else waiting?.reject(errorOf(answer.fault));
    });
    worker.on('error', (error) => (why = messageOf(error)));
    worker.on('exit', () => {
      if (this.#worker === worker) this.#worker = null;
      for (const { reject } of this.#waiting.values()) reject(gone(why));
      this.#waiting.clear();
    });
    return worker;
  }
}

function gone(why: string): Error {
  return new Error(`the thread that renders prompts is gone: ${why}`);
}
