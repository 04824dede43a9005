/** What is known of a model: limits and prices, in LiteLLM's spelling. */
import { z } from 'zod';
import { laxInteger, laxNumber } from '../../wire/harbor/lax.ts';
import type { ModelUsage } from '../../engines/model-call.ts';

/** Further fields are kept out of sight: the agent has no use for them. */
export const modelInfoSchema = z.object({
  max_input_tokens: laxInteger.nullish(),
  max_tokens: laxInteger.nullish(),
  max_output_tokens: laxInteger.nullish(),
  input_cost_per_token: laxNumber.nullish(),
  output_cost_per_token: laxNumber.nullish(),
  cache_read_input_token_cost: laxNumber.nullish(),
});
export type ModelInfo = z.output<typeof modelInfoSchema>;

/** Harbor's assumption for a model that it knows nothing about. */
const unknownContextTokens = 1_000_000;

const neededForVllm = [
  'max_input_tokens',
  'max_output_tokens',
  'input_cost_per_token',
  'output_cost_per_token',
] as const;

/** The rules for models behind `hosted_vllm/`. */
export function modelInfoProblems(
  modelName: string,
  info: ModelInfo | null,
): { readonly name: string; readonly message: string; readonly remedy: string }[] {
  if (!modelName.startsWith('hosted_vllm/')) return [];
  const problems = [];
  if (!/^hosted_vllm\/[^/\s]+$/u.test(modelName))
    problems.push({
      name: 'model_name',
      message: `a hosted_vllm model is named by one word, not ${JSON.stringify(modelName)}`,
      remedy: 'Serve it under a name without a slash, or use openai/NAME.',
    });
  const missing = neededForVllm.filter((field) => (info?.[field] ?? null) === null);
  if (missing.length > 0)
    problems.push({
      name: 'model_info',
      message: `a hosted_vllm model needs ${missing.join(', ')}`,
      remedy: `Give --ak 'model_info={"max_input_tokens": 32768, …}' with these fields, or use openai/NAME, which needs none.`,
    });
  return problems;
}

export function contextTokens(info: ModelInfo): number {
  return info.max_input_tokens ?? info.max_tokens ?? unknownContextTokens;
}

/** By the configured prices; 0 without any. Cached tokens cost as others do unless they have a price of their own. */
export function costUsd(info: ModelInfo, usage: ModelUsage): number {
  const inputPrice = info.input_cost_per_token ?? 0;
  const cached = usage.cachedTokens ?? 0;
  return (
    (usage.promptTokens - cached) * inputPrice +
    cached * (info.cache_read_input_token_cost ?? inputPrice) +
    usage.completionTokens * (info.output_cost_per_token ?? 0)
  );
}
