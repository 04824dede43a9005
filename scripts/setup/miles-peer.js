/**
 * A trainer's side that is not ours, for the tests: the Python package `miles-rl` with what its client of session servers and its HTTP helper stand on, in a folder of
 * the cache; nothing of the machine's Python changes. `tests/support/miles-peer.ts` starts them.
 */
import { existsSync } from 'node:fs';
import { mkdir, rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { cacheDir } from './cache-dir.js';
import { findPython, installPackages } from './python.js';

export const milesVersion = '0.0.2';
const digest = '452c5c0d8b7fc3729f225e63194f16fa7bbe587b6936386c6501793fce7cf820';

/** Free to change their digests: by version. */
const beneath = [
  ...['annotated-types==0.8.0', 'anyio==4.16.0', 'certifi==2026.10.19.post1', 'h11==0.16.0'],
  ...['httpcore==1.0.9', 'httpx==0.28.1', 'idna==3.20', 'pydantic==2.14.4'],
  ...['pydantic-core==2.50.5', 'sniffio==1.3.1', 'typing-extensions==4.16.0'],
  'typing-inspection==0.4.5',
];

/** Folder to put first on Python's path. It is complete when it exists. */
export function milesPeerDir() {
  return join(cacheDir(), `miles-rl-${milesVersion}`);
}

/** The file in that folder that names the interpreter it was made for. */
export const interpreterFile = 'interpreter.txt';

/** @returns {Promise<string>} What was done. */
export async function provideMilesPeer() {
  if (existsSync(join(milesPeerDir(), interpreterFile))) return 'in the cache';
  const python = await findPython('the client of trainers that the tests drive the sessions with');
  const draft = join(cacheDir(), `.miles-rl-${process.pid}`);
  try {
    await mkdir(draft, { recursive: true });
    const list = join(draft, 'pinned.txt');
    await writeFile(list, `miles-rl==${milesVersion} --hash=sha256:${digest}\n`);
    await installPackages(python, draft, ['--require-hashes', '-r', list]);
    await installPackages(python, draft, beneath);
    await writeFile(join(draft, interpreterFile), python);
    await rm(milesPeerDir(), { recursive: true, force: true });
    await rename(draft, milesPeerDir());
  } finally {
    await rm(draft, { recursive: true, force: true });
  }
  return `miles-rl ${milesVersion} installed for ${python}`;
}
