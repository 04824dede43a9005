/**
 * Two validators of ATIF that are not ours, for the tests: the package `atif`, and Harbor's own, of which only its models are used. They are
 * put into a folder of the cache; nothing of the machine's Python changes. `tests/support/atif-peers.ts` reads the same folder.
 */
import { existsSync } from 'node:fs';
import { mkdir, rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { cacheDir } from './cache-dir.js';
import { findPython, installPackages } from './python.js';

/** Both are the same file everywhere, so their digests are known. */
const pinned = [
  'atif==1.8.0 --hash=sha256:b002ade91e50a5925e6f540adc0f5f5cdc6afdd806efc6282b69f03d461958cc',
  'harbor==0.22.0 --hash=sha256:4c4c6571b3d160ed0cb45b82918136751fb08e7b8596412723ac00dde12eeabb',
];
/** What their models stand on: another file for each machine. */
const beneath = [
  'pydantic==2.14.4',
  'pydantic-core==2.50.5',
  'annotated-types==0.8.0',
  'typing-extensions==4.16.0',
  'typing-inspection==0.4.5',
];

/** Folder to put first on Python's path. It is complete when it exists. */
export function atifPeersDir() {
  return join(cacheDir(), 'atif-peers-atif-1.8.0-harbor-0.22.0');
}

/** The file in that folder that names the interpreter it was made for. */
export const interpreterFile = 'interpreter.txt';

/** @returns {Promise<string>} What was done. */
export async function provideAtifPeers() {
  if (existsSync(join(atifPeersDir(), interpreterFile))) return 'in the cache';
  const python = await findPython('the validators that the tests compare with');
  const draft = join(cacheDir(), `.atif-peers-${process.pid}`);
  try {
    await mkdir(draft, { recursive: true });
    const list = join(draft, 'pinned.txt');
    await writeFile(list, `${pinned.join('\n')}\n`);
    // Harbor wants a newer Python and a hundred packages; its models need neither.
    await installPackages(python, draft, [
      '--ignore-requires-python',
      '--require-hashes',
      '-r',
      list,
    ]);
    await installPackages(python, draft, beneath);
    await rm(list);
    await writeFile(join(draft, interpreterFile), python);
    await rm(atifPeersDir(), { recursive: true, force: true });
    await rename(draft, atifPeersDir());
  } finally {
    await rm(draft, { recursive: true, force: true });
  }
  return `installed for ${python}`;
}
