import type { ModelUsage } from '../model-call.ts';
import { numberOf, recordOf } from './json.ts';

/** Usage as OpenAI spells it; null when a count is missing. */
export function usageOf(value: unknown): ModelUsage | null {
  const usage = recordOf(value);
  const promptTokens = numberOf(usage?.['prompt_tokens']);
  const completionTokens = numberOf(usage?.['completion_tokens']);
  if (promptTokens === null || completionTokens === null) return null;
  const details = recordOf(usage?.['prompt_tokens_details']);
  const completion = recordOf(usage?.['completion_tokens_details']);
  return {
    promptTokens,
    completionTokens,
    cachedTokens: numberOf(details?.['cached_tokens']),
    // SGLang counts them beside the tokens that they are part of.
    reasoningTokens:
      numberOf(completion?.['reasoning_tokens']) ?? numberOf(usage?.['reasoning_tokens']),
  };
}

/** Usage as SGLang's `meta_info` spells it. */
export function metaUsage(value: unknown): ModelUsage | null {
  const meta = recordOf(value);
  const usage = usageOf(value);
  return usage === null ? null : { ...usage, cachedTokens: numberOf(meta?.['cached_tokens']) };
}
