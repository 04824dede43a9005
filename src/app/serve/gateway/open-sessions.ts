import { getHeapStatistics } from 'node:v8';
import { readSecrets, type SecretSources } from '../../../config/serve/read-secrets.ts';
import type { ServeConfig } from '../../../config/serve/read-serve-config.ts';
import type { Clock } from '../../../core/clock.ts';
import type { Logger } from '../../../core/logger.ts';
import { SessionServer } from '../../../gateway/sessions/session-server.ts';
import { SessionUpstream } from '../../../gateway/sessions/session-upstream.ts';
import { Access } from '../../../server/access.ts';
import { assertMayListen } from '../../../server/may-listen.ts';
import type { ChatCodec } from '../../../sessions/codec.ts';
import { openMatcher, openPicker, openPostprocessor } from '../../../sessions/miles/named-rules.ts';
import { SessionStore } from '../../../sessions/miles/session-store.ts';
import { openCallers } from '../callers.ts';
import { renamed } from './renamed-error.ts';

/** Turns of a session of the second version, as clients of Miles know it. */
const maxNodes = 1_024;

export interface OpenSessionsParts {
  readonly clock: Clock;
  readonly logger: Logger;
  readonly sources: SecretSources;
  /** CONFIG_INVALID. */
  readonly openCodec: () => Promise<ChatCodec>;
}

/** The session routes of one data listener; null = none are configured. CONFIG_INVALID, LISTEN_REFUSED. */
export async function openSessions(
  config: ServeConfig,
  { clock, logger, sources, openCodec }: OpenSessionsParts,
): Promise<SessionServer | null> {
  const { sessions, limits, listen } = config;
  const { url, version, templateVariables, maxIdleMs, timeoutMs } = sessions;
  if (url === null) return null;
  const { keys, allowFrom } = await openCallers(config, sources);
  assertMayListen(listen.dataHost, keys, allowFrom);
  const places = sessions.key === null ? [] : [sessions.key];
  const found = await readSecrets({ 'sessions.key': places }, sources);
  const key = found['sessions.key']?.[0] ?? null;
  const upstream = underField('sessions.url', () => {
    return new SessionUpstream({ url, key, timeoutMs, hidesCallers: keys.hasKeys });
  });
  const store = new SessionStore({
    ...{ clock, maxIdleMs },
    maxBytes: sessions.maxBytes ?? Math.floor(getHeapStatistics().heap_size_limit / 2),
    rules: {
      ...{ version, templateVariables, maxNodes, logger },
      codec: await openCodec(),
      matches: await openMatcher(sessions.matcher),
      replay: {
        ...{ routedLayers: sessions.routedExpertsLayers, hasIndexer: sessions.indexerTopk },
        isAdditional: sessions.pauseMode === 'in_place',
      },
      picker: { name: sessions.picker, pick: await openPicker(sessions.picker) },
      postprocessor: {
        name: sessions.postprocessor,
        process: await openPostprocessor(sessions.postprocessor),
      },
      nowS: () => clock.now().getTime() / 1000,
    },
  });
  const access = new Access(keys, allowFrom);
  return new SessionServer({
    ...{ store, upstream, logger, bodyBytes: limits.bodyBytes },
    access: (request, keyInPath) => access.refusalOf(request, keyInPath),
  });
}

function underField<T>(field: string, make: () => T): T {
  try {
    return make();
  } catch (error) {
    throw renamed(error, field);
  }
}
