import type { ServeConfig } from '../../config/serve/read-serve-config.ts';
import { readSecrets, type SecretSources } from '../../config/serve/read-secrets.ts';
import { isRolloutError, RolloutError } from '../../core/errors.ts';
import type { Engine, EngineLoad, EngineOpener } from '../../engines/engine.ts';

/** The engine that the cap of running rollouts follows; null = none is named. */
export async function openLoadEngine(
  { engine }: ServeConfig,
  { openEngine, sources }: { readonly openEngine: EngineOpener; readonly sources: SecretSources },
): Promise<{ readonly engine: Engine; readonly key: string | null } | null> {
  if (engine.url === null) return null;
  const places = engine.key === null ? [] : [engine.key];
  const key = (await readSecrets({ 'engine.key': places }, sources))['engine.key']?.[0] ?? null;
  try {
    return {
      engine: await openEngine({ kind: engine.kind, baseUrl: engine.url, apiKey: key }),
      key,
    };
  } catch (error) {
    if (!isRolloutError(error, 'CONFIG_INVALID')) throw error;
    const { message, remedy } = error;
    throw new RolloutError('CONFIG_INVALID', message, {
      ...{ phase: 'config', field: 'engine.url', cause: error },
      ...(remedy !== null && { remedy }),
    });
  }
}

export function loadOf(engine: Engine): (signal: AbortSignal) => Promise<EngineLoad> {
  return (signal) => engine.load(signal);
}
