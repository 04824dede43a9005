import type { ServeConfig } from '../../config/serve/read-serve-config.ts';
import { readSecrets, secretFiles, type SecretSources } from '../../config/serve/read-secrets.ts';
import type { KeySource } from '../../server/key-ring.ts';

/** Where the keys of callers are, by the name of their setting. */
function keyPlaces(config: ServeConfig): Readonly<Record<string, readonly string[]>> {
  return {
    'keys.control': config.keys.control,
    ...Object.fromEntries(
      Object.entries(config.tenants).map(([name, { key }]) => [`tenants.${name}.key`, key]),
    ),
  };
}

/** For the key ring, which reads files again at a reload. CONFIG_INVALID for a variable that is not set. */
export async function keySources(
  config: ServeConfig,
  sources: SecretSources,
): Promise<readonly KeySource[]> {
  const made = Object.entries(keyPlaces(config)).map(async ([name, places]) => {
    const tenant = /^tenants\.(.+)\.key$/.exec(name)?.[1] ?? null;
    return await Promise.all(
      places.map(async (place): Promise<KeySource> => {
        const [path] = secretFiles({ [name]: [place] }, sources.baseDir);
        if (path !== undefined) return { tenant, name, from: { kind: 'file', path } };
        const values = await readSecrets({ [name]: [place] }, sources);
        return { tenant, name, from: { kind: 'value', value: values[name]?.[0] ?? '' } };
      }),
    );
  });
  return (await Promise.all(made)).flat();
}

/** All keys of callers, for the mask of the log. */
export async function callerKeys(
  config: ServeConfig,
  sources: SecretSources,
): Promise<readonly string[]> {
  return Object.values(await readSecrets(keyPlaces(config), sources)).flat();
}

/** Values of the headers that go to the collector of spans. */
export async function otlpHeadersOf(
  { telemetry }: ServeConfig,
  sources: SecretSources,
): Promise<Readonly<Record<string, string>>> {
  const names = Object.keys(telemetry.otlpHeaders);
  const places = names.map((name) => [
    `telemetry.otlp_headers.${name}`,
    [telemetry.otlpHeaders[name] ?? ''],
  ]);
  const values = Object.values(
    await readSecrets(Object.fromEntries(places) as Record<string, string[]>, sources),
  );
  return Object.fromEntries(names.map((name, index) => [name, values[index]?.[0] ?? '']));
}

/** Files of keys: when one changes, keys are read again. */
export function keyFiles(config: ServeConfig): readonly string[] {
  return secretFiles(keyPlaces(config), config.baseDir);
}
