/** Secrets are in variables and files that the configuration names, never in it, on argv or in a listing of it. */
import { readFile } from 'node:fs/promises';
import { resolve } from 'node:path';
import { messageOf } from '../../core/errors.ts';
import type { HostVariables } from '../machine.ts';
import { Problems } from '../problems.ts';

export interface SecretSources {
  readonly variables: HostVariables;
  /** Where relative paths start. */
  readonly baseDir: string;
}

/** The secrets at some places: a file holds one per line, so that an old and a new key can be valid together. CONFIG_INVALID names the place. */
export async function readSecrets(
  places: Readonly<Record<string, readonly string[]>>,
  sources: SecretSources,
): Promise<Readonly<Record<string, readonly string[]>>> {
  const problems = new Problems();
  const found: Record<string, readonly string[]> = {};
  for (const [name, list] of Object.entries(places)) {
    const secrets = await Promise.all(
      list.map(async (place) => {
        const read = await readPlace(place, sources);
        if (read.length === 0 || read.some((secret) => /[^\u0020-\u007e]/.test(secret)))
          problems.add(
            name,
            `${place} holds no key, or one that no header can hold`,
            'Write one key per line: letters, digits and signs.',
          );
        return read;
      }),
    ).catch((error: unknown) => {
      problems.add(name, messageOf(error), 'Set the variable, or correct the path.');
      return [];
    });
    found[name] = secrets.flat();
  }
  problems.throwIfAny();
  return found;
}

async function readPlace(
  place: string,
  { variables, baseDir }: SecretSources,
): Promise<readonly string[]> {
  if (place.startsWith('env:')) {
    const name = place.slice('env:'.length);
    const value = (variables[name] ?? '').trim();
    if (value === '') throw new Error(`the variable ${name} is not set`);
    return [value];
  }
  const path = resolve(baseDir, place.slice('file:'.length));
  const text = await readFile(path, 'utf8').catch((error: unknown) => {
    const { code } = error as NodeJS.ErrnoException;
    throw new Error(code === 'ENOENT' ? `${path}: no such file` : `${path}: ${code ?? ''}`);
  });
  return text
    .split(/\r?\n/)
    .map((line) => line.trim())
    .filter((line) => line !== '' && !line.startsWith('#'));
}

/** The files among the places, absolute: what a change of which means that keys are read again. */
export function secretFiles(
  places: Readonly<Record<string, readonly string[]>>,
  baseDir: string,
): readonly string[] {
  const paths = Object.values(places)
    .flat()
    .filter((place) => place.startsWith('file:'))
    .map((place) => resolve(baseDir, place.slice('file:'.length)));
  return [...new Set(paths)];
}
