/**
 * Where the model is, and with which key. The first place that names an address decides, also when what it holds is empty: an empty address never
 * falls back to another one.
 */
import { RolloutError } from '../../core/errors.ts';
import type { AgentOptions } from '../agent.ts';

const addressVariables = ['OPENAI_BASE_URL', 'OPENAI_API_BASE'] as const;
const keyVariable = 'OPENAI_API_KEY';

/** Addresses may carry a key. */
export const hostOnlyVariables: readonly string[] = [keyVariable, ...addressVariables];

export interface Endpoint {
  readonly baseUrl: string;
  /** null = none. */
  readonly apiKey: string | null;
}

export interface GivenEndpoint {
  /** The kwarg `api_base`. */
  readonly apiBase: string | null;
  /** From `llm_kwargs`. */
  readonly apiKey: string | null;
}

/** Throws MODEL_UNSPECIFIED, or CONFIG_INVALID for what is plainly no address. */
export function findEndpoint(
  { env, hostVariables }: Pick<AgentOptions, 'env' | 'hostVariables'>,
  given: GivenEndpoint,
): Endpoint {
  const places: readonly (readonly [where: string, value: string | null | undefined])[] = [
    ['agent.kwargs.api_base', given.apiBase],
    ...addressVariables.map((name) => [`agent.env.${name}`, env[name]] as const),
    ...addressVariables.map((name) => [`the variable ${name}`, hostVariables[name]] as const),
  ];
  const [where, address] = places.find(([, value]) => (value ?? null) !== null) ?? [null, null];
  if (where === null || (address ?? '').trim() === '') throw noAddress(where);
  // Said here, where the place that it came from is known; the address itself may hold a key.
  if (!/^https?:\/\//i.test(address ?? '')) throw noUrl(where);
  const key = given.apiKey ?? env[keyVariable] ?? hostVariables[keyVariable] ?? '';
  return { baseUrl: address ?? '', apiKey: key === '' ? null : key };
}

function noUrl(where: string): RolloutError {
  return new RolloutError('CONFIG_INVALID', `${where} is not an http(s) URL`, {
    phase: 'config',
    field: 'agent.kwargs.api_base',
    remedy: 'Give an address such as http://127.0.0.1:30000/v1.',
  });
}

function noAddress(emptyPlace: string | null): RolloutError {
  const message =
    emptyPlace === null ? 'no address of a model is set' : `${emptyPlace} is set but empty`;
  return new RolloutError('MODEL_UNSPECIFIED', message, {
    phase: 'config',
    field: 'agent.kwargs.api_base',
    remedy:
      'Pass --ak api_base=URL, or set OPENAI_BASE_URL (or OPENAI_API_BASE) in agent.env or in the environment of this process.',
  });
}
