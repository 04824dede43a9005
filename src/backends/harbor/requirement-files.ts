/** What is asked of pip, as one word: the texts, and the content of every file of this machine that they name. */
import { createHash, type Hash } from 'node:crypto';
import { readdir, readFile, stat } from 'node:fs/promises';
import path from 'node:path';
import { messageOf, RolloutError } from '../../core/errors.ts';
import type { Requirements } from './harbor-options.ts';

const nestedFile = /^\s*(?:-r|-c|--requirement|--constraint)(?:\s+|=|(?=[^\s-]))(\S+)/;

/** A wheel that is built anew under its old name is another one. CONFIG_INVALID for a file of requirements that cannot be read. */
export async function fingerprintOf({ file, list, cwd }: Requirements): Promise<string> {
  const hash = createHash('sha256');
  if (file !== null) await addFile(file, { hash, cwd, seen: new Set() });
  for (const text of list) await addLine(text, { hash, cwd });
  return hash.digest('hex').slice(0, 16);
}

async function addFile(
  file: string,
  at: { readonly hash: Hash; readonly cwd: string; readonly seen: Set<string> },
): Promise<void> {
  if (at.seen.has(file)) return;
  at.seen.add(file);
  const text = await readFile(file, 'utf8').catch((error: unknown) => {
    throw new RolloutError('CONFIG_INVALID', `${file} cannot be read: ${messageOf(error)}`, {
      phase: 'config',
      field: 'backend.harbor.requirements',
      remedy: 'Name a file of requirements as pip reads them, or a list of requirements.',
    });
  });
  for (const line of text.split('\n')) {
    const nested = nestedFile.exec(line)?.[1];
    const isHere = nested !== undefined && !nested.includes('://');
    if (isHere) await addFile(path.resolve(path.dirname(file), nested), at);
    else await addLine(line.replace(/(^|\s)#.*$/, ''), at);
  }
}

async function addLine(
  text: string,
  { hash, cwd }: { readonly hash: Hash; readonly cwd: string },
): Promise<void> {
  hash.update(`${text.trim()}\n`);
  for (const word of text.split(/[\s=]+/).filter((part) => part !== '')) {
    const named = path.resolve(cwd, word.replace(/^file:(?:\/\/)?/, ''));
    const found = await stat(named).catch(() => null);
    if (found?.isFile() === true) hash.update(await readFile(named));
    else if (found?.isDirectory() === true) await addFolder(named, hash);
  }
}

/** A folder of wheels. */
async function addFolder(dir: string, hash: Hash): Promise<void> {
  for (const name of (await readdir(dir)).sort()) {
    const { size, mtimeMs } = await stat(path.join(dir, name));
    hash.update(`${name}\0${size}\0${mtimeMs}\n`);
  }
}
