import type { ServeConfig } from '../../config/serve/read-serve-config.ts';
import { RolloutError } from '../../core/errors.ts';
import { silentLogger } from '../../core/logger.ts';
import { UrlPolicy } from '../../wire/url-policy.ts';
import type { AppPorts } from '../ports.ts';
import { openLoadEngine } from '../serve/engine-load.ts';
import { otlpHeadersOf } from '../serve/key-sources.ts';
import { makeBackendHere } from '../serve/open-backend.ts';

/** What starting the server would refuse of its configuration, before anything is made or asked: CONFIG_INVALID, BACKEND_UNKNOWN. Nothing is left behind. */
export async function checkOwnServer(config: ServeConfig, ports: AppPorts): Promise<void> {
  const sources = { variables: ports.machine.variables, baseDir: config.baseDir };
  new UrlPolicy(config.callbacks);
  await otlpHeadersOf(config, sources);
  const load = await openLoadEngine(config, { openEngine: ports.openEngine, sources });
  await load?.engine.destroy(
    new RolloutError('CANCELLED', 'it was only looked at', { phase: 'config' }),
  );
  const backend = await makeBackendHere(config, { ports, logger: silentLogger });
  await backend.close();
}
