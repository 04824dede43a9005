/**
 * Puts an answer together while its parts go out. Ids and log-probabilities that contradict each other or the engine's own counts are not
 * repaired: they become null in the result and `extra.tokens_rejected`, `extra.prompt_tokens_rejected` or `extra.logprobs_rejected` says why.
 * Parts that went out before the contradiction was seen stay as the engine sent them; the result is what counts.
 */
import type { FinishReason, ModelPart, ModelResult, ModelUsage } from '../model-call.ts';
import { SampledCalls, type ToolCallPiece } from './sampled-calls.ts';

export class AnswerBuilder {
  readonly #requestId: string;
  readonly #wantsTokens: boolean;
  readonly #waiting: ModelPart[] = [];
  readonly #toolCalls: SampledCalls;
  #text = '';
  #reasoning: string | null = null;
  #ids: number[] | null = null;
  #logprobs: unknown[] = [];
  #promptIds: readonly number[] | null = null;
  #extra: Record<string, unknown> = {};
  stopString: string | null = null;
  usage: ModelUsage | null = null;
  weightVersion: string | null = null;
  model: string | null = null;

  constructor(request: { readonly requestId: string; readonly wantsTokens: boolean }) {
    this.#requestId = request.requestId;
    this.#wantsTokens = request.wantsTokens;
    this.#toolCalls = new SampledCalls(request.requestId, (part) => this.#waiting.push(part));
  }

  get text(): string {
    return this.#text;
  }

  get hasIds(): boolean {
    return this.#ids !== null;
  }

  hasSameIds(ids: readonly number[]): boolean {
    return this.#ids?.length === ids.length && ids.every((id, index) => id === this.#ids?.[index]);
  }

  /** Parts since the last call. */
  take(): readonly ModelPart[] {
    return this.#waiting.splice(0);
  }

  addText(text: string): void {
    if (text === '') return;
    this.#toolCalls.interrupt();
    this.#text += text;
    this.#waiting.push({ type: 'text-delta', text });
  }

  /** The whole text as the engine ends with it, where that is not what its parts made. */
  replaceText(text: string): void {
    this.#text = text;
  }

  addReasoning(text: string): void {
    this.#reasoning = (this.#reasoning ?? '') + text;
    if (text === '') return;
    this.#toolCalls.interrupt();
    this.#waiting.push({ type: 'reasoning-delta', text });
  }

  /** What is wrong with the piece; null = it was taken. */
  addToolCall(piece: ToolCallPiece): string | null {
    return this.#toolCalls.add(piece);
  }

  /** `logprobs` as they stand in the answer; null = none came with these ids. What comes behind ids that were rejected would stand in their place. */
  addTokens(ids: readonly number[], logprobs: readonly unknown[] | null): void {
    if (!this.#wantsTokens || this.#extra['tokens_rejected'] !== undefined) return;
    this.#ids = this.#ids ?? [];
    for (const id of ids) this.#ids.push(id);
    if (logprobs !== null) this.addLogprobs(logprobs);
    if (ids.length === 0) return;
    const isAligned = logprobs?.length === ids.length && areNumbers(logprobs);
    this.#waiting.push({ type: 'tokens-delta', ids, logprobs: isAligned ? logprobs : null });
  }

  /** Log-probabilities whose ids come later. */
  addLogprobs(logprobs: readonly unknown[]): void {
    if (!this.#wantsTokens) return;
    for (const logprob of logprobs) this.#logprobs.push(logprob);
  }

  /** All ids at once, after the log-probabilities. */
  addLateTokens(ids: readonly number[]): void {
    if (!this.#wantsTokens) return;
    const logprobs = this.#logprobs.splice(0);
    this.addTokens(ids, logprobs.length === 0 ? null : logprobs);
  }

  setPromptIds(ids: readonly number[]): void {
    if (!this.#wantsTokens || this.#promptIds !== null) return;
    this.#promptIds = ids;
    this.#waiting.push({ type: 'prompt-ids', ids });
  }

  rejectTokens(reason: string): void {
    this.#extra['tokens_rejected'] ??= reason;
  }

  addExtra(fields: Readonly<Record<string, unknown>>): void {
    for (const [name, value] of Object.entries(fields))
      if (value !== null && value !== undefined) this.#extra[name] = value;
  }

  /** The last parts. */
  end(finishReason: FinishReason): readonly ModelPart[] {
    this.#toolCalls.end();
    const { outputIds, promptIds, logprobs } = this.#checked();
    const result: ModelResult = {
      requestId: this.#requestId,
      text: this.#text,
      reasoning: this.#reasoning,
      toolCalls: this.#toolCalls.calls,
      finishReason,
      stopString: this.stopString,
      promptIds,
      outputIds,
      logprobs,
      weightVersion: this.weightVersion,
      usage: this.usage,
      model: this.model,
      extra: this.#extra,
    };
    this.#waiting.push({ type: 'end', result });
    return this.take();
  }

  #checked(): Pick<ModelResult, 'outputIds' | 'promptIds' | 'logprobs'> {
    let [outputIds, promptIds] = [this.#ids, this.#promptIds];
    const { usage } = this;
    if (outputIds !== null && usage !== null && usage.completionTokens !== outputIds.length)
      this.rejectTokens(`${outputIds.length} ids, but ${usage.completionTokens} tokens in usage`);
    if (promptIds !== null && usage !== null && usage.promptTokens !== promptIds.length) {
      const reason = `${promptIds.length} ids, but ${usage.promptTokens} tokens in usage`;
      this.#extra['prompt_tokens_rejected'] = reason;
      promptIds = null;
    }
    if (this.#extra['tokens_rejected'] !== undefined) outputIds = null;
    return { outputIds, promptIds, logprobs: this.#checkedLogprobs(outputIds) };
  }

  #checkedLogprobs(outputIds: readonly number[] | null): readonly number[] | null {
    const logprobs = this.#logprobs;
    if (outputIds === null) return null;
    if (logprobs.length === outputIds.length && areNumbers(logprobs)) return logprobs;
    if (logprobs.length > 0)
      this.#extra['logprobs_rejected'] =
        logprobs.length === outputIds.length
          ? 'not all are finite numbers'
          : `${logprobs.length} log-probabilities, but ${outputIds.length} ids`;
    return null;
  }
}

function areNumbers(values: readonly unknown[]): values is readonly number[] {
  return values.every((value) => typeof value === 'number' && Number.isFinite(value));
}
