/**
 * Reads chat completions, whole or streamed, and finds ids wherever engines put them:
 *
 * - vLLM: `prompt_token_ids` on the answer or its first chunk, `choices[0].token_ids` on each chunk, also on chunks without text.
 * - SGLang: `choices[0].token_ids` and `choices[0].prompt_token_ids`; or `choices[0].meta_info.output_token_logprobs` of an answer that is not
 *   streamed; or a last chunk without choices whose `sglext` holds `input_ids` and `output_ids`.
 * - LiteLLM: `choices[0].provider_specific_fields.token_ids`.
 *
 * A streamed answer and a whole one take the same way: the message of a whole answer is one large delta.
 */
import type { GenerateRequest } from '../engine.ts';
import type { ModelPart } from '../model-call.ts';
import { AnswerBuilder } from './answer-builder.ts';
import { embeddedError, engineError, type AnswerOrigin } from './answer-error.ts';
import { choiceExtra } from './choice-extra.ts';
import { endOf } from './finish-reason.ts';
import { idsOf, listOf, numberOf, recordOf, textOf, type JsonRecord } from './json.ts';
import type { AnswerReader } from './running-call.ts';
import { stopsOf } from './stop-strings.ts';
import { usageOf } from './usage.ts';

export class ChatReader implements AnswerReader {
  readonly #builder: AnswerBuilder;
  readonly #at: AnswerOrigin;
  readonly #stops: readonly unknown[];
  #finish: string | null = null;

  constructor(request: GenerateRequest, at: AnswerOrigin) {
    this.#builder = new AnswerBuilder(request);
    this.#stops = stopsOf(request);
    this.#at = at;
  }

  event(document: unknown): readonly ModelPart[] {
    this.#read(document, 'delta');
    return this.#builder.take();
  }

  whole(document: unknown): readonly ModelPart[] {
    this.#read(document, 'message');
    const parts = this.end();
    if (parts !== null) return parts;
    throw this.#invalid('the answer has no choice with a finish_reason');
  }

  end(): readonly ModelPart[] | null {
    return this.#finish === null ? null : endOf(this.#builder, this.#finish, this.#at);
  }

  #read(document: unknown, kind: 'delta' | 'message'): void {
    const error = embeddedError(document, this.#at);
    if (error !== null) throw error;
    const answer = recordOf(document);
    const choices = listOf(answer?.['choices']);
    if (answer === null || (choices === null && kind === 'message'))
      throw this.#invalid('the answer is not a chat completion');
    const builder = this.#builder;
    builder.model ??= textOf(answer['model']);
    builder.usage = usageOf(answer['usage']) ?? builder.usage;
    builder.weightVersion ??= textOf(recordOf(answer['metadata'])?.['weight_version']);
    const promptIds = idsOf(answer['prompt_token_ids']);
    if (promptIds !== null) builder.setPromptIds(promptIds);
    for (const each of choices ?? []) {
      const choice = recordOf(each);
      if (choice === null) throw this.#invalid('a choice is not an object');
      if ((numberOf(choice['index']) ?? 0) === 0) this.#readChoice(choice, kind);
    }
    this.#readSglext(recordOf(answer['sglext']));
  }

  #readChoice(choice: JsonRecord, kind: 'delta' | 'message'): void {
    const builder = this.#builder;
    const message = recordOf(choice[kind]) ?? {};
    const thoughts = [textOf(message['reasoning_content']), textOf(message['reasoning'])];
    const said = thoughts.filter((each) => each !== null);
    // Some hosts send both fields, one of them empty.
    const reasoning = said.find((each) => each !== '') ?? said[0];
    if (reasoning !== undefined) builder.addReasoning(reasoning);
    builder.addText(contentText(message['content']));
    builder.addText(textOf(message['refusal']) ?? '');
    this.#readToolCalls(listOf(message['tool_calls']) ?? [], kind);
    this.#readTokens(choice);
    const finish = textOf(choice['finish_reason']);
    if (finish !== null) this.#finish = finish;
    // vLLM, then SGLang; a number is the end token that was sampled.
    this.#readStop(choice['stop_reason'] ?? choice['matched_stop']);
    builder.addExtra(choiceExtra(choice, message));
  }

  #readToolCalls(calls: readonly unknown[], kind: 'delta' | 'message'): void {
    for (const [position, each] of calls.entries()) {
      const call = recordOf(each);
      if (call === null) throw this.#invalid('a tool call is not an object');
      const fields = recordOf(call['function']);
      const given = fields?.['arguments'];
      const problem = this.#builder.addToolCall({
        // The list of a whole message holds each call once, whatever indexes it names.
        index: kind === 'message' ? position : numberOf(call['index']),
        id: textOf(call['id']),
        name: textOf(fields?.['name']),
        // Some hosts parse what was sampled; the text is then theirs.
        arguments: textOf(given) ?? (recordOf(given) === null ? '' : JSON.stringify(given)),
        position,
        count: calls.length,
      });
      if (problem !== null) throw this.#invalid(problem);
    }
  }

  /** Only what the request named is a stop string: hosts put other reasons there as well. */
  #readStop(spoken: unknown): void {
    const stop = textOf(spoken);
    if (stop !== null && this.#stops.includes(stop)) this.#builder.stopString = stop;
  }

  #readTokens(choice: JsonRecord): void {
    const builder = this.#builder;
    const specific = recordOf(choice['provider_specific_fields']);
    const meta = recordOf(choice['meta_info']);
    builder.weightVersion ??= textOf(meta?.['weight_version']);
    const promptIds = idsOf(choice['prompt_token_ids']) ?? idsOf(specific?.['prompt_token_ids']);
    if (promptIds !== null) builder.setPromptIds(promptIds);
    const spoken = choice['token_ids'] ?? specific?.['token_ids'] ?? null;
    const ids = idsOf(spoken);
    if (spoken !== null && ids === null) builder.rejectTokens('token_ids are not all ids');
    const logprobs = contentLogprobs(choice['logprobs']);
    const pairs = listOf(meta?.['output_token_logprobs'])?.map((each) => listOf(each) ?? []);
    if (ids !== null)
      builder.addTokens(ids, logprobs ?? pairs?.map(([logprob]) => logprob) ?? null);
    else if (pairs !== undefined) {
      const paired = idsOf(pairs.map(([, id]) => id));
      if (paired === null) builder.rejectTokens('output_token_logprobs are not all pairs');
      else
        builder.addTokens(
          paired,
          pairs.map(([logprob]) => logprob),
        );
    } else if (logprobs !== null) builder.addLogprobs(logprobs);
  }

  #readSglext(sglext: JsonRecord | null): void {
    const builder = this.#builder;
    const [input, output] = [
      idsOfChoice(sglext?.['input_ids']),
      idsOfChoice(sglext?.['output_ids']),
    ];
    builder.weightVersion ??= textOf(sglext?.['weight_version']);
    // As large as the answer, and the trainer's alone: as they came.
    builder.addExtra({
      routed_experts: sglext?.['routed_experts'],
      indexer_topk: sglext?.['indexer_topk'],
    });
    if (input !== null) builder.setPromptIds(input);
    if (output === null) return;
    if (!builder.hasIds) builder.addLateTokens(output);
    else if (!builder.hasSameIds(output)) builder.rejectTokens('the ids of sglext are others');
  }

  #invalid(what: string): Error {
    return engineError('ENGINE_RESPONSE_INVALID', what, this.#at);
  }
}

/** A list of ids, or one list per choice. */
function idsOfChoice(value: unknown): readonly number[] | null {
  return idsOf(value) ?? idsOf(listOf(value)?.[0]);
}

function contentText(content: unknown): string {
  const parts = listOf(content);
  if (parts === null) return textOf(content) ?? '';
  return parts.map((part) => textOf(recordOf(part)?.['text']) ?? '').join('');
}

function contentLogprobs(logprobs: unknown): readonly unknown[] | null {
  const content = listOf(recordOf(logprobs)?.['content']);
  return content?.map((each) => recordOf(each)?.['logprob']) ?? null;
}
