import type { ServeConfig } from '../../config/serve/read-serve-config.ts';
import type { RouteRules } from '../../wire/rollout/route-rules.ts';

/** What the calls of every rollout keep to. */
export function rulesOf({ gateway }: ServeConfig): RouteRules {
  const { sampling, maxTurns, maxRequests, maxSampledTokens } = gateway;
  return {
    pins: sampling,
    budgets: {
      ...(maxTurns !== null && { max_turns: maxTurns }),
      ...(maxRequests !== null && { max_requests: maxRequests }),
      ...(maxSampledTokens !== null && { max_sampled_tokens: maxSampledTokens }),
    },
  };
}
