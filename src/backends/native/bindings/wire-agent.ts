/** Writes the address and the key of a rollout into the agent's configuration, where its binding reads them. The address is opaque: byte for byte. */
import type { AgentConfig } from '../../../wire/harbor/run-config.ts';
import type { ModelRoute } from '../../../wire/rollout/model-route.ts';
import type { Binding } from './binding.ts';

type Wired = Pick<AgentConfig, 'kwargs' | 'env'>;

/** With the binding's defaults and pin, as for every trial; changes nothing of `agent`. `route`: null = none is written. */
export function wireAgent(binding: Binding, agent: Wired, route: ModelRoute | null): Wired {
  const { defaults, pinnedVersion, wiring } = binding;
  const kwargs: Record<string, unknown> = {
    ...defaults,
    ...structuredClone(agent.kwargs),
    ...(pinnedVersion !== null && { version: pinnedVersion }),
  };
  const env = { ...agent.env };
  if (route === null || wiring === 'none') return { kwargs, env };
  if (wiring === 'env')
    return {
      kwargs,
      env: { ...env, OPENAI_BASE_URL: route.baseUrl, OPENAI_API_KEY: route.apiKey },
    };
  const llm = tableOf(kwargs['llm_kwargs']);
  return {
    env,
    kwargs: {
      ...kwargs,
      api_base: route.baseUrl,
      llm_kwargs: {
        ...llm,
        api_key: route.apiKey,
        // A controller's session route answers JSON, whatever was asked.
        extra_body: { ...tableOf(llm['extra_body']), stream: false },
      },
    },
  };
}

/** What is no table cannot be: the owned slots below it were refused at construction. */
function tableOf(value: unknown): Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
    ? (value as Readonly<Record<string, unknown>>)
    : {};
}
