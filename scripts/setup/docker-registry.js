/**
 * A registry of images for tests that push to one: the installed one, else the single package of the next Debian release in Slipway's
 * cache. It is not installed, since its package starts a registry that all may use.
 */
import { existsSync } from 'node:fs';
import { mkdir, rename } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { cacheDir } from './cache-dir.js';
import { nextSuite, unpackFromNextRelease } from './next-release.js';
import { findProgram, run } from './programs.js';
import { SetupProblem } from './step.js';

const name = 'docker-registry';

function unpackedRegistry() {
  return join(cacheDir(), name, name);
}

/** @returns {string | null} Absolute path of the one on PATH, else of that of the cache. */
export function dockerRegistryPath() {
  return findProgram(name) ?? (existsSync(unpackedRegistry()) ? unpackedRegistry() : null);
}

/** @returns {Promise<string>} What was done. */
export async function provideDockerRegistry() {
  const found = dockerRegistryPath();
  if (found !== null) return found === unpackedRegistry() ? 'in the cache' : `installed: ${found}`;
  const isUnpacked = await unpackFromNextRelease(name, keep);
  if (!isUnpacked) throw new SetupProblem(remedy());
  return `unpacked ${name} of ${nextSuite} into the cache`;
}

/** @param {string} root */
async function keep(root) {
  const program = join(root, 'usr/bin', name);
  const asked = existsSync(program) ? await run(program, ['--version']) : null;
  if (asked?.code !== 0)
    throw new SetupProblem(`The package of ${nextSuite} holds no ${name} that runs.\n${remedy()}`);
  await mkdir(dirname(unpackedRegistry()), { recursive: true });
  await rename(program, unpackedRegistry());
}

function remedy() {
  return [
    'Tests that push images need a registry, the program of distribution/distribution: put it on PATH as',
    `docker-registry, or at ${unpackedRegistry()}`,
  ].join('\n');
}
