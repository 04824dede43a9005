/** An answer in ids, read as it comes: what its family's parser makes of them takes the place of the engine's own text. */
import { isRolloutError, RolloutError } from '../../core/errors.ts';
import type { ModelCall, ModelPart, ModelResult } from '../../engines/model-call.ts';
import type { SampledMessage, TurnParser } from '../../sessions/codec.ts';
import type { SessionPrompt } from '../../sessions/prompts/token-session.ts';
import { StopGate } from './stop-gate.ts';

export interface TokensCallParts {
  /** Of the engine. */
  readonly call: ModelCall;
  readonly prompt: SessionPrompt;
  readonly parser: TurnParser;
  readonly stops: readonly string[];
  /** The answer came to its end, and its ids are those of the prompt and these. */
  readonly onAnswer: (outputIds: readonly number[], message: SampledMessage) => void;
}

export class TokensCall implements ModelCall {
  readonly requestId: string;
  readonly #parts: TokensCallParts;
  readonly #gate: StopGate;
  /** How many ids were read. */
  #count = 0;

  constructor(parts: TokensCallParts) {
    this.#parts = parts;
    this.#gate = new StopGate(parts.stops);
    this.requestId = parts.call.requestId;
  }

  [Symbol.asyncIterator](): AsyncIterator<ModelPart, undefined> {
    const engine = this.#parts.call[Symbol.asyncIterator]();
    const waiting: ModelPart[] = [];
    // By hand: a generator that waits for the engine could not be left.
    const leave = async (): Promise<IteratorReturnResult<undefined>> => {
      await engine.return?.();
      return { done: true, value: undefined };
    };
    return {
      next: async () => {
        for (;;) {
          const part = waiting.shift();
          if (part !== undefined) return { done: false, value: part };
          const step = await engine.next();
          if (step.done === true) return { done: true, value: undefined };
          try {
            waiting.push(...this.#read(step.value));
          } catch (error) {
            await leave();
            throw error;
          }
        }
      },
      return: leave,
    };
  }

  #read(part: ModelPart): readonly ModelPart[] {
    switch (part.type) {
      case 'tokens-delta':
        this.#count += part.ids.length;
        return [part, ...this.#gate.push(this.#parsed(part.ids))];
      case 'prompt-ids':
        return [part];
      case 'end':
        return this.#end(part.result);
      case 'text-delta':
      case 'reasoning-delta':
      case 'tool-call-start':
      case 'tool-call-delta':
      case 'tool-call-end':
        return []; // the engine's own reading of its ids
    }
  }

  #parsed(ids: readonly number[]): ReturnType<TurnParser['push']> {
    try {
      return this.#parts.parser.push(ids);
    } catch (error) {
      if (!isRolloutError(error)) throw error;
      throw invalid(`the vocabulary is another one than the engine's: ${error.message}`, error);
    }
  }

  #end(result: ModelResult): readonly ModelPart[] {
    const { parser, prompt, onAnswer } = this.#parts;
    const { usage, finishReason, outputIds } = result;
    const isVouched = this.#count > 0 && outputIds !== null;
    const isShort = !isVouched && this.#count < (usage?.completionTokens ?? Infinity);
    // What was not read is missing in the text, too.
    if (isShort && finishReason !== 'abort')
      throw invalid('the engine does not say which ids it sampled');
    const read = parser.end();
    const { parts, message } = this.#gate.end(read.parts, {
      ...{ message: read.message, stop: result.stopString },
    });
    const promptIds = result.promptIds ?? this.#ownPromptIds(result);
    // Where the engine contradicts itself nothing goes on from here.
    const isKnown = promptIds !== null && areEqual(promptIds, prompt.ids);
    if (isKnown && outputIds !== null && outputIds.length > 0 && finishReason !== 'abort')
      onAnswer(outputIds, message);
    const { source, kept } = prompt;
    const extra = { ...result.extra, session: { prompt: source, kept } };
    return [...parts, { type: 'end', result: { ...result, ...message, promptIds, extra } }];
  }

  /** Not all engines repeat what they were given. */
  #ownPromptIds({ extra }: ModelResult): readonly number[] | null {
    return extra['prompt_tokens_rejected'] === undefined ? [...this.#parts.prompt.ids] : null;
  }
}

function areEqual(ids: readonly number[], others: Int32Array): boolean {
  return ids.length === others.length && ids.every((id, at) => id === others[at]);
}

function invalid(what: string, cause?: unknown): RolloutError {
  return new RolloutError('ENGINE_RESPONSE_INVALID', what, {
    phase: 'model-call',
    remedy: 'Give the vocabulary of the model as sessions.tokenizer, and an engine that tells ids.',
    ...(cause !== undefined && { cause }),
  });
}
