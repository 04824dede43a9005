/** An answer while it is read: the engine's own whole once it says that it is over, before that what has come. */
import type {
  FinishReason,
  ModelPart,
  ModelResult,
  ModelUsage,
  SampledToolCall,
} from '../../engines/model-call.ts';

export interface CapturedAnswer {
  /** As the engine was asked; null = not known. */
  readonly requestId: string | null;
  readonly text: string;
  readonly reasoning: string | null;
  readonly toolCalls: readonly SampledToolCall[];
  /** null = the engine did not come to its end. */
  readonly finishReason: FinishReason | null;
  readonly stopString: string | null;
  readonly promptIds: readonly number[] | null;
  readonly outputIds: readonly number[] | null;
  readonly logprobs: readonly number[] | null;
  readonly weightVersion: string | null;
  readonly usage: ModelUsage | null;
  readonly model: string | null;
  /** Further fields of the answer's choice. */
  readonly choice: Readonly<Record<string, unknown>>;
}

interface GrowingCall {
  readonly id: string;
  readonly name: string;
  arguments: string;
}

/** What came of an answer. Ids are the engine's, never made of text; those without a log-probability each have none. */
export class AnswerSoFar {
  #text = '';
  #reasoning: string | null = null;
  readonly #toolCalls = new Map<number, GrowingCall>();
  readonly #ids: number[] = [];
  #logprobs: number[] | null = [];
  #promptIds: readonly number[] | null = null;
  #result: ModelResult | null = null;

  get isComplete(): boolean {
    return this.#result !== null;
  }

  push(part: ModelPart): void {
    switch (part.type) {
      case 'text-delta':
        this.#text += part.text;
        break;
      case 'reasoning-delta':
        this.#reasoning = (this.#reasoning ?? '') + part.text;
        break;
      case 'tool-call-start':
        this.#toolCalls.set(part.index, { id: part.id, name: part.name, arguments: '' });
        break;
      case 'tool-call-delta': {
        const call = this.#toolCalls.get(part.index);
        if (call !== undefined) call.arguments += part.arguments;
        break;
      }
      case 'prompt-ids':
        this.#promptIds = part.ids;
        break;
      case 'tokens-delta':
        this.#addTokens(part);
        break;
      case 'tool-call-end':
        break;
      case 'end':
        this.#result = part.result;
    }
  }

  answer(): CapturedAnswer {
    const whole = this.#result;
    if (whole !== null) return { ...whole, choice: whole.extra };
    const hasIds = this.#ids.length > 0;
    return {
      ...{ requestId: null, text: this.#text, reasoning: this.#reasoning },
      toolCalls: [...this.#toolCalls.values()],
      ...{ finishReason: null, stopString: null, promptIds: this.#promptIds },
      outputIds: hasIds ? this.#ids : null,
      logprobs: hasIds ? this.#logprobs : null,
      ...{ weightVersion: null, usage: null, model: null, choice: {} },
    };
  }

  #addTokens({ ids, logprobs }: Extract<ModelPart, { readonly type: 'tokens-delta' }>): void {
    for (const id of ids) this.#ids.push(id);
    if (logprobs === null) this.#logprobs = null;
    else for (const logprob of logprobs) this.#logprobs?.push(logprob);
  }
}
