/**
 * One sequence being sampled, from its admission to its end. The scheduler alone changes it; routes wait for `changed` and read. States:
 *
 *   waiting → running        admitted
 *   running → frozen         pause in place: keeps its KV
 *   frozen → running         continue
 *   running, frozen → waiting   retracted: gives its KV back, keeps its tokens
 *   waiting, running, frozen → ended
 */
import type { SamplingParams } from '../engine.ts';
import { OutputText } from './stop-rule.ts';
import type { SampledToken, Vocabulary } from './token-model.ts';

export type GenerationState = 'waiting' | 'running' | 'frozen' | 'ended';

const transitions: Readonly<Record<GenerationState, readonly GenerationState[]>> = {
  waiting: ['running', 'ended'],
  running: ['waiting', 'frozen', 'ended'],
  frozen: ['waiting', 'running', 'ended'],
  ended: [],
};

export type Finish =
  | { readonly type: 'stop'; readonly matched: number | string }
  | { readonly type: 'length'; readonly length: number }
  | { readonly type: 'abort'; readonly message: string }
  /** The model itself failed. */
  | { readonly type: 'error'; readonly message: string };

export interface GenerationRequest {
  readonly id: string;
  readonly promptIds: readonly number[];
  readonly sampling: SamplingParams & { readonly maxTokens: number };
  readonly topLogprobs: number;
}

export class Generation {
  readonly request: GenerationRequest;
  readonly output: OutputText;
  readonly tokens: SampledToken[] = [];
  /** Length of the text after each token. */
  readonly textEnds: number[] = [];
  readonly startedMs: number;
  cachedTokens = 0;
  firstWeightVersion: string | null = null;
  weightVersion = '';
  endedMs = 0;
  readonly #controller = new AbortController();
  #state: GenerationState = 'waiting';
  #finish: Finish | null = null;
  #readers: (() => void)[] = [];
  #stateReaders: (() => void)[] = [];
  #isWakeSet = false;

  constructor(request: GenerationRequest, vocabulary: Vocabulary, startedMs: number) {
    this.request = request;
    this.output = new OutputText(vocabulary, request.sampling);
    this.startedMs = startedMs;
  }

  get state(): GenerationState {
    return this.#state;
  }

  /** null until it has ended. */
  get finish(): Finish | null {
    return this.#finish;
  }

  /** Fires when the generation is aborted, for the model. */
  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  /** Prompt and output: what its KV takes. */
  get length(): number {
    return this.request.promptIds.length + this.tokens.length;
  }

  enter(state: Exclude<GenerationState, 'ended'>): void {
    this.#move(state);
  }

  end(finish: Finish): void {
    this.output.end();
    // What the end set free of the text belongs to the last token.
    if (this.textEnds.length > 0) this.textEnds[this.textEnds.length - 1] = this.output.text.length;
    this.#finish = finish;
    this.#move('ended');
    if (finish.type === 'abort') this.#controller.abort(new Error(finish.message));
    this.#wake();
  }

  /** Takes a token; readers wake once per turn of the event loop, however many tokens came in it. */
  push(token: SampledToken): void {
    this.tokens.push(token);
    this.output.push(token.id);
    this.textEnds.push(this.output.text.length);
    if (this.#isWakeSet) return;
    this.#isWakeSet = true;
    setImmediate(() => this.#wake());
  }

  /** Resolves when there are more than `count` tokens or the generation has ended. */
  async changed(count: number): Promise<void> {
    while (this.tokens.length <= count && this.#state !== 'ended')
      await new Promise<void>((resolve) => this.#readers.push(resolve));
  }

  /** Resolves when it is running or has ended. */
  async runnable(): Promise<void> {
    while (this.#state !== 'running' && this.#state !== 'ended')
      await new Promise<void>((resolve) => this.#stateReaders.push(resolve));
  }

  #wake(): void {
    this.#isWakeSet = false;
    for (const resolve of this.#readers.splice(0)) resolve();
  }

  #move(state: GenerationState): void {
    if (!transitions[this.#state].includes(state))
      throw new Error(`a generation went from ${this.#state} to ${state}`);
    this.#state = state;
    for (const resolve of this.#stateReaders.splice(0)) resolve();
  }
}
