/**
 * Reads SGLang's `/generate`. A stream repeats the whole text and all log-probabilities with each chunk, unless the server was started to send
 * only what is new. Which of the two it is follows from positions: `completion_tokens` counts all tokens so far, so a list as long as that
 * is cumulative, and one as long as its growth is new.
 */
import type { GenerateRequest } from '../engine.ts';
import type { ModelPart } from '../model-call.ts';
import { AnswerBuilder } from '../shared/answer-builder.ts';
import {
  embeddedError,
  engineError,
  statusError,
  type AnswerOrigin,
} from '../shared/answer-error.ts';
import { metaExtra } from '../shared/choice-extra.ts';
import { endOf } from '../shared/finish-reason.ts';
import { idsOf, listOf, numberOf, recordOf, textOf, type JsonRecord } from '../shared/json.ts';
import type { AnswerReader } from '../shared/running-call.ts';
import { stopsOf } from '../shared/stop-strings.ts';
import { metaUsage } from '../shared/usage.ts';

export class GenerateReader implements AnswerReader {
  readonly #builder: AnswerBuilder;
  readonly #at: AnswerOrigin;
  /** null = not told yet. */
  #isCumulative: boolean | null = null;
  /** `completion_tokens` of the chunk before. */
  #counted = 0;
  readonly #stops: readonly unknown[];
  #finish: string | null = null;

  constructor(
    request: GenerateRequest,
    { at, promptIds }: { readonly at: AnswerOrigin; readonly promptIds: readonly number[] },
  ) {
    this.#builder = new AnswerBuilder(request);
    this.#builder.setPromptIds(promptIds);
    this.#at = at;
    this.#stops = stopsOf(request);
  }

  event(document: unknown): readonly ModelPart[] {
    const error = embeddedError(document, this.#at);
    if (error !== null) throw error;
    const answer = recordOf(document);
    const meta = recordOf(answer?.['meta_info']);
    if (answer === null || meta === null)
      throw engineError('ENGINE_RESPONSE_INVALID', 'the answer has no meta_info', this.#at);
    const builder = this.#builder;
    this.#readTokens(answer, meta);
    this.#readText(textOf(answer['text']) ?? '');
    builder.usage = metaUsage(meta) ?? builder.usage;
    // The last one said: an update in mid-answer changes who sampled the rest.
    builder.weightVersion = textOf(meta['weight_version']) ?? builder.weightVersion;
    const extra = metaExtra(meta);
    if (extra !== null) builder.addExtra({ meta_info: extra });
    this.#readFinish(meta['finish_reason']);
    return builder.take();
  }

  whole(document: unknown): readonly ModelPart[] {
    const parts = this.event(document);
    const last = this.end();
    if (last !== null) return [...parts, ...last];
    throw engineError('ENGINE_RESPONSE_INVALID', 'the answer has no finish_reason', this.#at);
  }

  end(): readonly ModelPart[] | null {
    return this.#finish === null ? null : endOf(this.#builder, this.#finish, this.#at);
  }

  #readTokens(answer: JsonRecord, meta: JsonRecord): void {
    const pairs = listOf(meta['output_token_logprobs'])?.map((each) => listOf(each) ?? []);
    const ids = idsOf(answer['output_ids']);
    const count = numberOf(meta['completion_tokens']);
    const length = pairs?.length ?? ids?.length;
    if (length === undefined) return;
    if (count === null) {
      this.#builder.rejectTokens('the answer has no completion_tokens');
      return;
    }
    const [before, grown] = [this.#counted, count - this.#counted];
    this.#counted = count;
    if (before > 0 && length !== grown && length === count) this.#isCumulative = true;
    if (before > 0 && length !== count && length === grown) this.#isCumulative = false;
    const isCumulative = this.#isCumulative ?? length === count;
    if (length !== (isCumulative ? count : grown)) {
      this.#builder.rejectTokens(`${length} log-probabilities at ${count} of completion_tokens`);
      return;
    }
    const isNew = <T>(list: readonly T[]): readonly T[] =>
      isCumulative ? list.slice(before) : list;
    if (pairs === undefined) {
      if (ids !== null) this.#builder.addTokens(isNew(ids), null);
      return;
    }
    const paired = idsOf(isNew(pairs).map(([, id]) => id));
    if (paired === null)
      this.#builder.rejectTokens('output_token_logprobs does not hold [logprob, id] throughout');
    else
      this.#builder.addTokens(
        paired,
        isNew(pairs).map(([logprob]) => logprob),
      );
  }

  #readText(text: string): void {
    // Says nothing about the text so far: the last chunk of an aborted request has none.
    if (text === '') return;
    const builder = this.#builder;
    const before = builder.text;
    // Without counts the texts have to tell; servers are cumulative unless told otherwise.
    this.#isCumulative ??=
      before === '' ? null : text.startsWith(before) || before.startsWith(text);
    if (this.#isCumulative !== true) builder.addText(text);
    else if (text.startsWith(before)) builder.addText(text.slice(before.length));
    // The end of a stop string that had gone out already is taken back.
    else builder.replaceText(text);
  }

  /** `{type, message?, status_code?}`, null until the end. An abort with a status is a refusal, one without is an abort that was asked for. */
  #readFinish(value: unknown): void {
    const fields = recordOf(value);
    const type = textOf(fields?.['type']) ?? textOf(value);
    if (type === null) return;
    const status = numberOf(fields?.['status_code']);
    const message = textOf(fields?.['message']) ?? '';
    if (type === 'abort' && status !== null && status >= 400)
      throw statusError({ status, body: message }, this.#at);
    this.#finish = type;
    const matched = fields?.['matched'];
    if (matched !== undefined) this.#builder.addExtra({ matched });
    if (typeof matched === 'string' && this.#stops.includes(matched))
      this.#builder.stopString = matched;
    if (message !== '') this.#builder.addExtra({ finish_message: message });
  }
}
