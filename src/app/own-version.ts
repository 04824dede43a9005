import { readFile } from 'node:fs/promises';

/** The version of this program, as its package says. */
export async function ownVersion(): Promise<string> {
  const manifest = new URL('../../package.json', import.meta.url);
  const { version } = JSON.parse(await readFile(manifest, 'utf8')) as { readonly version: string };
  return version;
}
