import { isRolloutError } from '../../core/errors.ts';
import type { EngineHealth } from '../engine.ts';
import type { EngineClient } from './engine-client.ts';
import { listOf, recordOf, textOf } from './json.ts';

export const unhealthy: EngineHealth = { isHealthy: false, model: null, weightVersion: null };

/** Runs `ask`; an engine that is down is unhealthy, a fired signal or a closed client is still an error. */
export async function healthOr(
  ask: () => Promise<EngineHealth>,
  { client, signal }: { readonly client: EngineClient; readonly signal: AbortSignal },
): Promise<EngineHealth> {
  signal.throwIfAborted();
  client.refuseWhenOver();
  try {
    return await ask();
  } catch (error) {
    signal.throwIfAborted();
    client.refuseWhenOver();
    if (isRolloutError(error)) return unhealthy;
    throw error;
  }
}

/** The name of the model that `GET path` lists; null when there is not exactly one. */
export async function onlyModel(
  client: EngineClient,
  path: string,
  signal: AbortSignal,
): Promise<string | null> {
  return (await modelListHealth(client, path, signal)).model;
}

/** Healthy when the route answers, also that it is missing; not when it fails or refuses the key. */
export async function modelListHealth(
  client: EngineClient,
  path: string,
  signal: AbortSignal,
): Promise<EngineHealth> {
  const { status, text } = await client.http.probe({ method: 'GET', path }, signal);
  if (status >= 500 || status === 401 || status === 403) return unhealthy;
  const models = listOf(recordOf(parsed(text))?.['data']) ?? [];
  const model = models.length === 1 ? textOf(recordOf(models[0])?.['id']) : null;
  return { isHealthy: true, model, weightVersion: null };
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}
