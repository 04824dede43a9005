/** `/v1/completions`: text or ids in, text and ids out, no chat. */
import type { FastifyInstance } from 'fastify';
import { z } from 'zod';
import { checkIds, openAiSampling, readBody, samplingOf, tokenIds } from '../body.ts';
import { speaks, type EngineParts } from '../engine-parts.ts';
import { Exchange, requestIdOf, type StreamWriter } from '../exchange.ts';
import type { Generation } from '../generation.ts';
import { Refusal } from '../refusal.ts';
import { exactNumber } from '../exact-number.ts';
import { doneEvent, event, textOf, usageOf } from '../token-views.ts';
import { checkModel } from './models.ts';

const route = '/v1/completions';

const schema = openAiSampling.extend({
  model: z.string().nullish(),
  prompt: z.union([z.string(), tokenIds, z.array(z.string()), z.array(tokenIds)]),
  stream: z.boolean().nullish(),
  stream_options: z.looseObject({ include_usage: z.boolean().nullish() }).nullish(),
  logprobs: z.int().min(0).nullish(),
  return_token_ids: z.boolean().nullish(),
  request_id: z.string().nullish(),
  rid: z.string().nullish(),
});
type Body = z.output<typeof schema>;

export function addCompletionsRoute(app: FastifyInstance, parts: EngineParts): void {
  const { model, dialect } = parts;
  app.post(route, async (incoming, reply) => {
    const body = readBody(schema, incoming.body);
    checkModel(body.model ?? null, parts);
    const isStreaming = body.stream === true;
    const given = (speaks(dialect, 'sglang') ? body.rid : null) ?? body.request_id;
    const exchange = new Exchange(parts, reply, {
      route,
      id: requestIdOf(given ?? incoming.headers['x-request-id'], 'cmpl-'),
      promptIds: promptIdsOf(body, parts),
      sampling: samplingOf(body),
      // A limit that is said to be none is the context's.
      defaultMaxTokens: body.max_tokens === null ? null : 16,
      topLogprobs: body.logprobs ?? 0,
      isStreaming,
    });
    const generation = await exchange.begin();
    const view = new CompletionView(generation, body, parts);
    if (isStreaming) await exchange.stream(generation, view);
    else
      await exchange.respond(generation, () => ({
        ...view.head(model.name),
        choices: [{ ...view.choice(0, generation.tokens.length, true), ...view.promptIds() }],
        usage: usageOf(generation),
      }));
  });
}

function promptIdsOf({ prompt }: Body, { model }: EngineParts): readonly number[] {
  const one = Array.isArray(prompt) && prompt.length === 1 ? prompt[0] : prompt;
  if (typeof one === 'string') return model.vocabulary.encode(one, { parsesSpecial: true });
  const ids = typeof one === 'number' ? [one] : one;
  const result = tokenIds.safeParse(ids);
  if (!result.success) throw new Refusal(400, 'prompt: this engine takes one prompt per request');
  checkIds(result.data, model.vocabulary.size);
  return result.data;
}

class CompletionView implements StreamWriter {
  readonly #generation: Generation;
  readonly #body: Body;
  readonly #parts: EngineParts;
  #shown = 0;
  #told = 0;

  constructor(generation: Generation, body: Body, parts: EngineParts) {
    this.#generation = generation;
    this.#body = body;
    this.#parts = parts;
  }

  head(model: string): Record<string, unknown> {
    const { request, startedMs } = this.#generation;
    return {
      id: request.id,
      object: 'text_completion',
      created: Math.floor(startedMs / 1000),
      model,
    };
  }

  promptIds(): Record<string, unknown> {
    return this.#body.return_token_ids === true && this.#parts.dialect !== 'openai'
      ? { prompt_token_ids: this.#generation.request.promptIds }
      : {};
  }

  /** Tokens from `from` to `to`, and the text that they set free. */
  choice(from: number, to: number, isLast: boolean): Record<string, unknown> {
    const { tokens, textEnds, output, finish } = this.#generation;
    const { vocabulary } = this.#parts.model;
    const upTo = isLast
      ? output.shownLength
      : Math.max(this.#shown, Math.min(textEnds[to - 1] ?? 0, output.shownLength));
    const text = output.text.slice(this.#shown, upTo);
    this.#shown = upTo;
    const told = tokens.slice(from, to);
    const matched = finish?.type === 'stop' ? finish.matched : null;
    return {
      index: 0,
      text,
      logprobs:
        typeof this.#body.logprobs !== 'number'
          ? null
          : {
              tokens: told.map(({ id }) => textOf(id, vocabulary)),
              token_logprobs: told.map(({ logprob }) => exactNumber(logprob)),
              top_logprobs: told.map(({ top }) =>
                Object.fromEntries(
                  top.map(({ id, logprob }) => [textOf(id, vocabulary), exactNumber(logprob)]),
                ),
              ),
              text_offset: told.map((_, index) => textEnds[from + index - 1] ?? 0),
            },
      finish_reason: isLast ? (finish?.type ?? 'abort') : null,
      stop_reason: isLast && matched !== vocabulary.endId ? matched : null,
      ...(this.#body.return_token_ids === true &&
        this.#parts.dialect !== 'openai' && { token_ids: told.map(({ id }) => id) }),
    };
  }

  tokens(from: number, to: number): string {
    let events = '';
    for (let count = from + 1; count <= to; count += 1) events += this.#event(count, false);
    return events;
  }

  end(): string {
    const usage =
      this.#body.stream_options?.include_usage === true
        ? event({
            ...this.head(this.#parts.model.name),
            choices: [],
            usage: usageOf(this.#generation),
          })
        : '';
    return this.#event(this.#generation.tokens.length, true) + usage + doneEvent;
  }

  #event(to: number, isLast: boolean): string {
    const isFirst = this.#told === 0;
    const choice = this.choice(this.#told, to, isLast);
    this.#told = to;
    return event({
      ...this.head(this.#parts.model.name),
      choices: [isFirst ? { ...choice, ...this.promptIds() } : choice],
    });
  }
}
