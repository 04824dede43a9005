import type { EngineClient } from './engine-client.ts';
import { idsOf, recordOf } from './json.ts';

/** `POST /tokenize`, which vLLM and SGLang spell alike. */
export async function askTokens(
  client: EngineClient,
  text: string,
  signal: AbortSignal,
): Promise<readonly number[]> {
  const body = { prompt: text, add_special_tokens: false };
  const request = { method: 'POST', path: '/tokenize', body } as const;
  const answer = recordOf(await client.http.controlJson(request, signal));
  const ids = idsOf(answer?.['tokens']);
  if (ids !== null) return ids;
  throw client.error('ENGINE_RESPONSE_INVALID', 'the answer to /tokenize holds no ids');
}
