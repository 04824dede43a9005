/**
 * The compose CLI, version 2, for tasks with side services: the installed one, else the machine's own package, else the single
 * package of the next Debian release, unpacked into Slipway's cache. The machine's apt sources stay as they are.
 */
import { existsSync } from 'node:fs';
import { mkdir, rename, rm, symlink } from 'node:fs/promises';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { aptInstall, candidate, hasApt, rootPrefix } from './apt.js';
import { cacheDir } from './cache-dir.js';
import { nextSuite, unpackFromNextRelease } from './next-release.js';
import { run } from './programs.js';
import { SetupProblem } from './step.js';

/** The folder to name in DOCKER_CONFIG, or to read `cli-plugins/docker-compose` from. */
export function composeConfigDir() {
  return join(cacheDir(), 'docker-config');
}

function unpackedPlugin() {
  return join(composeConfigDir(), 'cli-plugins', 'docker-compose');
}

/** @returns {Promise<string>} What was done. */
export async function provideCompose() {
  if (await isVersion2('docker', ['compose'])) return 'docker compose is installed';
  if (await isVersion2('docker-compose', [])) return 'docker-compose is installed';
  if (existsSync(unpackedPlugin())) {
    await linkLogins();
    return 'the compose plugin is in the cache';
  }
  if (!hasApt()) {
    throw new SetupProblem('Install the plugin `docker compose` (version 2) for side services.');
  }
  const own = await ownPackage();
  const prefix = own === null ? null : await rootPrefix();
  if (own !== null && prefix !== null) {
    await aptInstall([own], prefix);
    return `installed ${own}`;
  }
  return unpackPlugin();
}

/** @param {string} program @param {readonly string[]} argv */
async function isVersion2(program, argv) {
  const version = await run(program, [...argv, 'version', '--short'], { timeoutMs: 10_000 });
  return version.code === 0 && /^v?[2-9]\./.test(version.stdout.trim());
}

/** The machine's own package that is compose version 2. */
async function ownPackage() {
  if (await candidate('docker-compose-v2')) return 'docker-compose-v2';
  return /^[2-9]\./.test((await candidate('docker-compose')) ?? '') ? 'docker-compose' : null;
}

async function unpackPlugin() {
  const isUnpacked = await unpackFromNextRelease('docker-compose', async (root) => {
    await mkdir(join(composeConfigDir(), 'cli-plugins'), { recursive: true });
    await linkLogins();
    await rename(join(root, 'usr/libexec/docker/cli-plugins/docker-compose'), unpackedPlugin());
  });
  if (!isUnpacked) {
    throw new SetupProblem('Install the package docker-compose-v2 for tasks with side services.');
  }
  return `unpacked docker-compose of ${nextSuite} into the cache`;
}

/** Whoever names our folder in DOCKER_CONFIG keeps the registry logins of the user's own one, if there are any. */
async function linkLogins() {
  const logins = join(homedir(), '.docker', 'config.json');
  const link = join(composeConfigDir(), 'config.json');
  await rm(link, { force: true });
  if (existsSync(logins)) await symlink(logins, link);
}
