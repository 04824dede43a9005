/** SGLang's native `/generate`. Streams repeat all text so far in every event, as SGLang's do. */
import type { FastifyInstance, FastifyReply } from 'fastify';
import { z } from 'zod';
import { checkIds, nativeSampling, readBody, samplingOf, tokenIds } from '../body.ts';
import type { EngineParts } from '../engine-parts.ts';
import { Exchange, requestIdOf, type StreamWriter } from '../exchange.ts';
import type { Generation } from '../generation.ts';
import { contextOverflow, Refusal } from '../refusal.ts';
import type { ScoredToken } from '../token-model.ts';
import { doneEvent, event, metaInfo } from '../token-views.ts';

const route = '/generate';

/** Events repeat what came before: of many tokens that are ready only every so many-th gets one, and the last few. */
const tokensPerEvent = 8;

const schema = z.looseObject({
  text: z.union([z.string(), z.array(z.string())]).nullish(),
  input_ids: z.union([tokenIds, z.array(tokenIds)]).nullish(),
  sampling_params: nativeSampling.nullish(),
  return_logprob: z.boolean().nullish(),
  logprob_start_len: z.int().nullish(),
  top_logprobs_num: z.int().min(0).nullish(),
  return_text_in_logprobs: z.boolean().nullish(),
  rid: z.union([z.string(), z.array(z.string())]).nullish(),
  stream: z.boolean().nullish(),
});
type Body = z.output<typeof schema>;

export function addGenerateRoute(app: FastifyInstance, parts: EngineParts): void {
  app.route({
    method: ['POST', 'PUT'],
    url: route,
    handler: async (incoming, reply) => {
      const body = readBody(schema, incoming.body);
      const { prompts, isBatch } = promptsOf(body, parts);
      const ids = requestIds(body, prompts.length, isBatch);
      if (!isBatch)
        await generateOne({ body, parts, reply, promptIds: prompts[0] ?? [], id: ids[0] ?? '' });
      else if (body.stream === true) throw new Refusal(400, 'stream: not supported for batches');
      else
        await generateBatch(
          prompts.map((promptIds, index) => ({
            body,
            parts,
            reply,
            promptIds,
            id: ids[index] ?? '',
          })),
          reply,
        );
    },
  });
}

interface One {
  readonly body: Body;
  readonly parts: EngineParts;
  readonly reply: FastifyReply;
  readonly promptIds: readonly number[];
  readonly id: string;
}

async function generateOne(one: One): Promise<void> {
  const exchange = exchangeOf(one);
  try {
    if (isScoring(one.body)) {
      exchange.respondDirectly(await scored(one, exchange));
      return;
    }
    const generation = await exchange.begin();
    const input = await inputLogprobs(one, exchange.signal);
    if (one.body.stream === true)
      await exchange.stream(generation, new NativeStream(generation, one, input));
    else await exchange.respond(generation, () => nativeAnswer(generation, one, input));
  } catch (error) {
    exchange.fail(error);
    throw error;
  }
}

/** Every sequence of a batch is a request of its own; the answer waits for the last, and what fails one fails all. */
async function generateBatch(batch: readonly One[], reply: FastifyReply): Promise<void> {
  const each = batch.map((one) => ({ one, exchange: exchangeOf(one) }));
  try {
    const answers = await Promise.all(each.map(answerOf));
    // Only now is it known that they are sent.
    for (const { exchange } of each) exchange.note();
    await reply.send(answers);
  } catch (error) {
    for (const { exchange } of each) exchange.fail(error);
    throw error;
  }
}

async function answerOf({
  one,
  exchange,
}: {
  readonly one: One;
  readonly exchange: Exchange;
}): Promise<unknown> {
  if (isScoring(one.body)) return await scored(one, exchange);
  const generation = await exchange.begin();
  const input = await inputLogprobs(one, exchange.signal);
  await exchange.settle(generation);
  return nativeAnswer(generation, one, input);
}

function exchangeOf({ body, parts, reply, promptIds, id }: One): Exchange {
  return new Exchange(parts, reply, {
    route,
    id,
    promptIds,
    sampling: samplingOf(body.sampling_params ?? {}),
    // A limit that is said to be none is the context's.
    defaultMaxTokens: body.sampling_params?.max_new_tokens === null ? null : 128,
    topLogprobs: body.return_logprob === true ? (body.top_logprobs_num ?? 0) : 0,
    isStreaming: body.stream === true,
  });
}

function isScoring({ sampling_params: sampling }: Body): boolean {
  return sampling?.max_new_tokens === 0;
}

/** Nothing is sampled: the answer is about the prompt alone. */
async function scored(one: One, exchange: Exchange): Promise<unknown> {
  const { parts, promptIds, id, body } = one;
  if (promptIds.length > parts.contextTokens)
    throw contextOverflow({ context: parts.contextTokens, prompt: promptIds.length, output: 0 });
  const input = await inputLogprobs(one, exchange.signal);
  const names = body.return_text_in_logprobs === true ? parts.model.vocabulary : null;
  const generation = parts.scheduler.unsampled({
    id,
    promptIds,
    sampling: { maxTokens: 0 },
    topLogprobs: 0,
  });
  return {
    text: '',
    output_ids: [],
    meta_info: metaInfo(generation, parts.scheduler.weightVersion, {
      logprobs: body.return_logprob === true,
      topLogprobs: body.top_logprobs_num ?? 0,
      names,
      count: 0,
      input,
    }),
  };
}

/** From `logprob_start_len` on; as in SGLang the first entry has no log-probability. */
async function inputLogprobs(one: One, signal: AbortSignal): Promise<readonly ScoredToken[]> {
  const { body, parts, promptIds } = one;
  const start = body.logprob_start_len ?? -1;
  if (body.return_logprob !== true || start < 0 || start >= promptIds.length) return [];
  const rest = await parts.model.score(
    { ids: promptIds, from: start + 1, topLogprobs: body.top_logprobs_num ?? 0 },
    signal,
  );
  return [{ id: promptIds[start] ?? 0, logprob: null, top: [] }, ...rest];
}

function nativeAnswer(
  generation: Generation,
  { body, parts }: One,
  input: readonly ScoredToken[],
): Record<string, unknown> {
  return view(generation, { body, parts, input, count: generation.tokens.length, isWhole: true });
}

function view(
  generation: Generation,
  options: {
    readonly body: Body;
    readonly parts: EngineParts;
    readonly input: readonly ScoredToken[];
    readonly count: number;
    /** The last that is told, with the reason of the end. */
    readonly isWhole: boolean;
  },
): Record<string, unknown> {
  const { body, parts, input, count, isWhole } = options;
  const { output, tokens, textEnds } = generation;
  const shown = isWhole
    ? output.shownLength
    : Math.min(textEnds[count - 1] ?? 0, output.shownLength);
  const noStopTrim = (body.sampling_params as Record<string, unknown> | null | undefined)?.[
    'no_stop_trim'
  ];
  const names = body.return_text_in_logprobs === true ? parts.model.vocabulary : null;
  return {
    text: isWhole && noStopTrim === true ? output.text : output.text.slice(0, shown),
    output_ids: tokens.slice(0, count).map(({ id }) => id),
    meta_info: {
      ...metaInfo(generation, parts.scheduler.weightVersion, {
        logprobs: body.return_logprob === true,
        topLogprobs: body.return_logprob === true ? (body.top_logprobs_num ?? 0) : 0,
        names,
        count,
        input,
      }),
      ...(!isWhole && { finish_reason: null }),
    },
  };
}

class NativeStream implements StreamWriter {
  readonly #generation: Generation;
  readonly #one: One;
  readonly #input: readonly ScoredToken[];

  constructor(generation: Generation, one: One, input: readonly ScoredToken[]) {
    this.#generation = generation;
    this.#one = one;
    this.#input = input;
  }

  tokens(from: number, to: number): string {
    let events = '';
    for (let count = from + 1; count <= to; count += 1)
      if (count % tokensPerEvent === 0 || to - count < tokensPerEvent)
        events += this.#event(count, false);
    return events;
  }

  end(): string {
    return this.#event(this.#generation.tokens.length, true) + doneEvent;
  }

  #event(count: number, isWhole: boolean): string {
    const { body, parts } = this.#one;
    return event(view(this.#generation, { body, parts, input: this.#input, count, isWhole }));
  }
}

function promptsOf(
  { text, input_ids: ids }: Body,
  { model }: EngineParts,
): { readonly prompts: readonly (readonly number[])[]; readonly isBatch: boolean } {
  const { vocabulary } = model;
  if (ids !== null && ids !== undefined) {
    const isBatch = Array.isArray(ids[0]);
    const prompts = isBatch ? z.array(tokenIds).parse(ids) : [tokenIds.parse(ids)];
    for (const prompt of prompts) checkIds(prompt, vocabulary.size);
    return { prompts, isBatch };
  }
  if (text === null || text === undefined)
    throw new Refusal(400, 'one of text and input_ids is needed');
  const texts = typeof text === 'string' ? [text] : text;
  const prompts = texts.map((part) => vocabulary.encode(part, { parsesSpecial: true }));
  return { prompts, isBatch: typeof text !== 'string' };
}

function requestIds({ rid }: Body, count: number, isBatch: boolean): readonly string[] {
  if (Array.isArray(rid)) {
    if (rid.length !== count) throw new Refusal(400, `rid: ${count} are needed, one per prompt`);
    return rid;
  }
  const id = requestIdOf(rid, '');
  return isBatch ? Array.from({ length: count }, (_, index) => `${id}_${index}`) : [id];
}
