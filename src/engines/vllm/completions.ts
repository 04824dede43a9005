/**
 * vLLM's `/v1/completions` with token ids as the prompt. Whole and streamed choices have one shape: what a chunk holds is new since the last.
 */
import type { GenerateRequest } from '../engine.ts';
import type { ModelPart } from '../model-call.ts';
import { AnswerBuilder } from '../shared/answer-builder.ts';
import { embeddedError, engineError, type AnswerOrigin } from '../shared/answer-error.ts';
import { openAiSampling, type JsonBody } from '../shared/chat-request.ts';
import { choiceExtra } from '../shared/choice-extra.ts';
import { endOf } from '../shared/finish-reason.ts';
import { idsOf, listOf, numberOf, recordOf, textOf, type JsonRecord } from '../shared/json.ts';
import type { AnswerReader } from '../shared/running-call.ts';
import { stopsOf } from '../shared/stop-strings.ts';
import { usageOf } from '../shared/usage.ts';

export function completionsBody(request: GenerateRequest, ids: readonly number[]): JsonBody {
  const { model, isStreaming, wantsTokens, sampling } = request;
  return {
    ...(model !== null && { model }),
    prompt: ids,
    ...openAiSampling(sampling),
    stream: isStreaming,
    ...(isStreaming && { stream_options: { include_usage: true } }),
    // The least count that gives the log-probability of the sampled id.
    ...(wantsTokens && { logprobs: 1, return_token_ids: true }),
    ...request.extraBody,
  };
}

export class CompletionsReader implements AnswerReader {
  readonly #builder: AnswerBuilder;
  readonly #at: AnswerOrigin;
  readonly #stops: readonly unknown[];
  #finish: string | null = null;

  constructor(request: GenerateRequest, at: AnswerOrigin) {
    this.#builder = new AnswerBuilder(request);
    this.#at = at;
    this.#stops = stopsOf(request);
  }

  event(document: unknown): readonly ModelPart[] {
    const error = embeddedError(document, this.#at);
    if (error !== null) throw error;
    const answer = recordOf(document);
    if (answer === null) throw this.#invalid('the answer is not a completion');
    const builder = this.#builder;
    builder.model ??= textOf(answer['model']);
    builder.usage = usageOf(answer['usage']) ?? builder.usage;
    for (const each of listOf(answer['choices']) ?? []) {
      const choice = recordOf(each);
      if (choice === null) throw this.#invalid('a choice is not an object');
      if ((numberOf(choice['index']) ?? 0) === 0) this.#readChoice(choice);
    }
    return builder.take();
  }

  whole(document: unknown): readonly ModelPart[] {
    const parts = this.event(document);
    const last = this.end();
    if (last === null) throw this.#invalid('the answer has no choice with a finish_reason');
    return [...parts, ...last];
  }

  end(): readonly ModelPart[] | null {
    return this.#finish === null ? null : endOf(this.#builder, this.#finish, this.#at);
  }

  #readChoice(choice: JsonRecord): void {
    const builder = this.#builder;
    builder.addText(textOf(choice['text']) ?? '');
    const promptIds = idsOf(choice['prompt_token_ids']);
    if (promptIds !== null) builder.setPromptIds(promptIds);
    const logprobs = listOf(recordOf(choice['logprobs'])?.['token_logprobs']);
    const spoken = choice['token_ids'] ?? null;
    const ids = idsOf(spoken);
    if (ids !== null) builder.addTokens(ids, logprobs);
    else if (spoken !== null) builder.rejectTokens('token_ids are not all ids');
    this.#finish = textOf(choice['finish_reason']) ?? this.#finish;
    const stop = textOf(choice['stop_reason']);
    if (stop !== null && this.#stops.includes(stop)) builder.stopString = stop;
    builder.addExtra(choiceExtra(choice, {}));
  }

  #invalid(what: string): Error {
    return engineError('ENGINE_RESPONSE_INVALID', what, this.#at);
  }
}
