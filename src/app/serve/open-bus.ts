import { readFile } from 'node:fs/promises';
import type { ServeConfig } from '../../config/serve/read-serve-config.ts';
import { readSecrets, type SecretSources } from '../../config/serve/read-secrets.ts';
import { messageOf, RolloutError } from '../../core/errors.ts';
import { NatsBus } from '../../scheduler/jetstream/nats-bus.ts';
import type { SecretMask } from '../../telemetry/secret-mask.ts';

/** The NATS servers of the configuration. CONFIG_INVALID, QUEUE_UNAVAILABLE, QUEUE_UNSUPPORTED. */
export async function openBus(
  { queue }: ServeConfig,
  parts: { readonly sources: SecretSources; readonly mask: SecretMask; readonly name: string },
): Promise<NatsBus> {
  const places = { 'queue.password': queue.password, 'queue.token': queue.token };
  const given = Object.entries(places).flatMap(([name, place]) =>
    place === null ? [] : [[name, [place]] as const],
  );
  const secrets = await readSecrets(Object.fromEntries(given), parts.sources);
  const [password = null] = secrets['queue.password'] ?? [];
  const [token = null] = secrets['queue.token'] ?? [];
  const credentials = queue.credentials === null ? null : await credentialsIn(queue.credentials);
  parts.mask.add([password, token].filter((one) => one !== null));
  const { url: urls, prefix, replicas, user } = queue;
  const tls = { caFile: queue.tlsCa, certFile: queue.tlsCert, keyFile: queue.tlsKey };
  return await NatsBus.open(
    { urls, prefix, replicas, user, password, token, credentials, tls },
    parts.name,
  );
}

async function credentialsIn(file: string): Promise<string> {
  try {
    return await readFile(file, 'utf8');
  } catch (error) {
    throw new RolloutError('CONFIG_INVALID', `${file} cannot be read: ${messageOf(error)}`, {
      ...{ phase: 'config', field: 'queue.credentials', cause: error },
      remedy: 'Name the file of credentials that the NATS servers gave out.',
    });
  }
}
