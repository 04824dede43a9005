import { readFile } from 'node:fs/promises';
import { homedir } from 'node:os';
import path from 'node:path';
import { z } from 'zod';
import { fullImageReference } from '../../shared/image-archives.ts';

const configFile = z.object({
  auths: z.record(z.string(), z.object({ auth: z.string().optional() })).optional(),
});

/**
 * The login that `docker login` stored for an image's registry, as the engine's header wants it; null without one. Credential
 * helpers are programs of the Docker CLI and are not asked.
 */
export async function registryAuth(
  reference: string,
  dockerConfigDir: string | null,
): Promise<string | null> {
  const folder = dockerConfigDir ?? path.join(homedir(), '.docker');
  const text = await readFile(path.join(folder, 'config.json'), 'utf8').catch(() => null);
  if (text === null) return null;
  const parsed = configFile.safeParse(parseJson(text));
  const registry = fullImageReference(reference).split('/')[0] ?? '';
  const key = registry === 'docker.io' ? 'https://index.docker.io/v1/' : registry;
  const auth = parsed.data?.auths?.[key]?.auth;
  if (auth === undefined) return null;
  const [username = '', ...password] = Buffer.from(auth, 'base64').toString('utf8').split(':');
  const login = { username, password: password.join(':'), serveraddress: key };
  return Buffer.from(JSON.stringify(login)).toString('base64url');
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return null; // a broken file of another program: as if there were no login
  }
}
