/** Trainers that are not ours, for the tests of the examples: wheels of verl and SkyRL in a folder of the cache, without anything beneath them; nothing of them is started whole. */
import { existsSync } from 'node:fs';
import { mkdir, rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { cacheDir } from './cache-dir.js';
import { findPython, installPackages } from './python.js';

const pinned = [
  'skyrl==0.3.0 --hash=sha256:0110e9434a58d6eb2aa533dd06e6346c8303757800af3c2b5a0d3f341cbad414',
  'verl==0.9.1 --hash=sha256:db6e6f2a8d9d5808d9ec32d357a42319fdc6967df688ff9d9810050f49bfdd14',
];

/** It is complete when it exists. */
export function trainerPeersDir() {
  return join(cacheDir(), 'trainer-peers-verl-0.9.1-skyrl-0.3.0');
}

/** @returns {Promise<string>} What was done. */
export async function provideTrainerPeers() {
  if (existsSync(trainerPeersDir())) return 'in the cache';
  const python = await findPython('the trainers whose classes the examples are tested with');
  const draft = join(cacheDir(), `.trainer-peers-${process.pid}`);
  try {
    await mkdir(draft, { recursive: true });
    const list = join(draft, 'pinned.txt');
    await writeFile(list, `${pinned.join('\n')}\n`);
    await installPackages(python, draft, ['--require-hashes', '-r', list]);
    await rename(draft, trainerPeersDir());
  } finally {
    await rm(draft, { recursive: true, force: true });
  }
  return 'verl 0.9.1 and skyrl 0.3.0 unpacked';
}
