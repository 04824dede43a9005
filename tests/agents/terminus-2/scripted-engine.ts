/** An engine whose replies a test writes; ids and log-probabilities are arbitrary numbers, so that nothing made of text can equal them. */
import type { Engine, EngineOptions, GenerateRequest } from '../../../src/engines/engine.ts';
import type { ModelCall, ModelPart, ModelResult } from '../../../src/engines/model-call.ts';

/** A request that is never answered. */
export const silence = Symbol('silence');

/** What the script says to one request: text, fields of the result, a failure, or nothing ever. */
export type ScriptedReply = string | Partial<ModelResult> | Error | typeof silence;
export type Script = (
  request: GenerateRequest,
  call: number,
) => ScriptedReply | Promise<ScriptedReply>;

export interface ScriptedCall {
  readonly request: GenerateRequest;
  /** null = it failed. */
  readonly result: ModelResult | null;
}

export class ScriptedEngine implements Engine {
  readonly kind = 'chat';
  readonly url = 'http://scripted.invalid/v1';
  readonly capabilities = {
    tokenInput: false,
    tokenIds: true,
    promptIds: true,
    logprobs: true,
    weightVersion: false,
    abortById: false,
    abortAll: false,
    pause: false,
    tokenize: false,
    load: false,
  };
  readonly calls: ScriptedCall[] = [];
  readonly opened: EngineOptions[] = [];
  closed = 0;
  destroyed: Error[] = [];
  readonly #script: Script;

  constructor(script: Script) {
    this.#script = script;
  }

  readonly open = (options: EngineOptions): Promise<Engine> => {
    this.opened.push(options);
    return Promise.resolve(this);
  };

  /** Contents of the messages of a call. */
  contents(call: number): readonly unknown[] {
    const input = this.calls[call]?.request.input;
    return input?.kind === 'messages' ? input.messages.map(({ content }) => content) : [];
  }

  async generate(request: GenerateRequest, signal: AbortSignal): Promise<ModelCall> {
    signal.throwIfAborted();
    const number = this.calls.length;
    const recorded: { request: GenerateRequest; result: ModelResult | null } = {
      request,
      result: null,
    };
    this.calls.push(recorded);
    const said = await this.#script(request, number);
    if (said instanceof Error) throw said;
    if (said === silence) return await untilAborted(signal);
    signal.throwIfAborted();
    const fields = typeof said === 'string' ? { text: said } : said;
    const result = { ...madeUp(request, number), ...fields };
    recorded.result = result;
    return {
      requestId: request.requestId,
      async *[Symbol.asyncIterator](): AsyncGenerator<ModelPart> {
        yield { type: 'text-delta', text: result.text };
        yield { type: 'end', result };
        await Promise.resolve();
      },
    };
  }

  abort = (): Promise<void> => Promise.resolve();
  abortAll = (): Promise<void> => Promise.resolve();
  pause = (): Promise<void> => Promise.resolve();
  continue = (): Promise<void> => Promise.resolve();
  health = () => Promise.resolve({ isHealthy: true, model: null, weightVersion: null });
  load = () => Promise.resolve({ runningRequests: 0, waitingRequests: 0, kvUse: null });
  tokenize = () => Promise.resolve([]);

  close(): Promise<void> {
    this.closed += 1;
    return Promise.resolve();
  }

  destroy(reason: Error): Promise<void> {
    this.destroyed.push(reason);
    return Promise.resolve();
  }
}

function madeUp(request: GenerateRequest, call: number): ModelResult {
  const wants = request.wantsTokens;
  const base = 1000 * (call + 1);
  return {
    requestId: request.requestId,
    text: '',
    reasoning: null,
    toolCalls: [],
    finishReason: 'stop',
    stopString: null,
    promptIds: wants ? [base, base + 1, base + 2] : null,
    outputIds: wants ? [base + 10, base + 11] : null,
    logprobs: wants ? [-0.1 - call, -1e-7] : null,
    weightVersion: null,
    usage: { promptTokens: 3, completionTokens: 2, cachedTokens: null, reasoningTokens: null },
    model: 'scripted-model',
    extra: {},
  };
}

function untilAborted(signal: AbortSignal): Promise<never> {
  return new Promise((_, reject) => {
    const fail = (): void => reject(signal.reason as Error);
    if (signal.aborted) fail();
    else signal.addEventListener('abort', fail, { once: true });
  });
}
