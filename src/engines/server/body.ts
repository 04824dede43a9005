/** Fields of request bodies, read leniently as the engines do; a wrong type is a 400 that names the field. */
import { z } from 'zod';
import type { SamplingParams } from '../engine.ts';
import { Refusal } from './refusal.ts';

export const tokenIds = z.array(z.int().min(0));
const strings = z.union([z.string().transform((text) => [text]), z.array(z.string())]);

const samplingFields = {
  temperature: z.number().min(0).nullish(),
  top_p: z.number().nullish(),
  top_k: z.int().nullish(),
  min_p: z.number().nullish(),
  stop: strings.nullish(),
  stop_token_ids: tokenIds.nullish(),
  seed: z.int().nullish(),
  sampling_seed: z.int().nullish(),
  frequency_penalty: z.number().nullish(),
  presence_penalty: z.number().nullish(),
  n: z.int().nullish(),
};

/** Sampling as `/v1` spells it. */
export const openAiSampling = z.looseObject({
  ...samplingFields,
  max_tokens: z.int().min(0).nullish(),
  max_completion_tokens: z.int().min(0).nullish(),
});

/** Sampling as `/generate` spells it. */
export const nativeSampling = z.looseObject({
  ...samplingFields,
  max_new_tokens: z.int().min(0).nullish(),
});

type SamplingFields = z.output<typeof openAiSampling> & z.output<typeof nativeSampling>;

export function readBody<T extends z.ZodType>(schema: T, body: unknown): z.output<T> {
  const result = schema.safeParse(body ?? {});
  if (result.success) return result.data;
  const problems = result.error.issues.map(
    ({ path, message }) => `${path.length === 0 ? 'body' : path.join('.')}: ${message}`,
  );
  throw new Refusal(400, problems.join('; '));
}

export function samplingOf(fields: Partial<SamplingFields>): SamplingParams {
  if ((fields.n ?? 1) !== 1) throw new Refusal(400, 'n: this engine samples one reply per request');
  const named = {
    maxTokens: fields.max_new_tokens ?? fields.max_completion_tokens ?? fields.max_tokens,
    temperature: fields.temperature,
    topP: fields.top_p,
    topK: fields.top_k,
    minP: fields.min_p,
    stop: fields.stop,
    stopTokenIds: fields.stop_token_ids,
    seed: fields.sampling_seed ?? fields.seed,
    frequencyPenalty: fields.frequency_penalty,
    presencePenalty: fields.presence_penalty,
  };
  const given = Object.entries(named).filter(([, value]) => value !== undefined && value !== null);
  return Object.fromEntries(given);
}

/** Ids that the vocabulary has. */
export function checkIds(ids: readonly number[], size: number): void {
  const wrong = ids.find((id) => id >= size);
  if (wrong !== undefined)
    throw new Refusal(400, `input_ids: ${wrong} is no id of this vocabulary (${size} ids)`);
}
