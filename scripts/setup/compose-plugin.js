/**
 * The compose CLI, version 2, for tasks with side services: the installed one, else the machine's own package, else the single
 * package of the next Debian release, unpacked into Slipway's cache. The machine's apt sources stay as they are.
 */
import { existsSync } from 'node:fs';
import { mkdir, readdir, rename, rm, symlink, writeFile } from 'node:fs/promises';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { aptInstall, candidate, debianKeyring, debianMirrors, hasApt, rootPrefix } from './apt.js';
import { cacheDir } from './cache-dir.js';
import { complaint, run } from './programs.js';
import { SetupProblem } from './step.js';

const nextSuite = 'trixie';
const fetchMs = 120_000;

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
  return unpackFromNextRelease();
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

async function unpackFromNextRelease() {
  const mirrors = await debianMirrors();
  if (mirrors.length === 0) {
    throw new SetupProblem('Install the package docker-compose-v2 for tasks with side services.');
  }
  /** @type {unknown} */
  let problem = null;
  for (const mirror of mirrors) {
    try {
      await unpackFrom(mirror);
      return `unpacked docker-compose of ${nextSuite} into the cache`;
    } catch (error) {
      problem ??= error;
    }
  }
  throw problem;
}

/** @param {string} mirror */
async function unpackFrom(mirror) {
  const work = join(cacheDir(), `.compose-${process.pid}`);
  try {
    await mkdir(join(work, 'lists', 'partial'), { recursive: true });
    await fetchPackage(work, mirror);
    const archive = (await readdir(work)).find((name) => name.endsWith('.deb'));
    await succeed('dpkg-deb', ['-x', join(work, archive ?? ''), join(work, 'root')]);
    await mkdir(join(composeConfigDir(), 'cli-plugins'), { recursive: true });
    const unpacked = join(work, 'root/usr/libexec/docker/cli-plugins/docker-compose');
    await linkLogins();
    await rename(unpacked, unpackedPlugin());
  } finally {
    await rm(work, { recursive: true, force: true });
  }
}

/** Whoever names our folder in DOCKER_CONFIG keeps the registry logins of the user's own one, if there are any. */
async function linkLogins() {
  const logins = join(homedir(), '.docker', 'config.json');
  const link = join(composeConfigDir(), 'config.json');
  await rm(link, { force: true });
  if (existsSync(logins)) await symlink(logins, link);
}

/**
 * Downloads the package with lists, cache and sources of our own.
 *
 * @param {string} work
 * @param {string} mirror
 */
async function fetchPackage(work, mirror) {
  const keyring = debianKeyring();
  const signedBy = keyring ? `[signed-by=${keyring}] ` : '';
  const sources = join(work, 'sources.list');
  await writeFile(sources, `deb ${signedBy}${mirror} ${nextSuite} main\n`);
  const settings = [
    `Dir::Etc::SourceList=${sources}`,
    'Dir::Etc::SourceParts=-',
    `Dir::State::Lists=${join(work, 'lists')}`,
    `Dir::Cache=${join(work, 'cache')}`,
    'APT::Sandbox::User=root',
    'Acquire::Languages=none',
  ].flatMap((setting) => ['-o', setting]);
  await mkdir(join(work, 'cache', 'archives', 'partial'), { recursive: true });
  await succeed('apt-get', [...settings, 'update']);
  await succeed('apt-get', [...settings, 'download', 'docker-compose'], work);
}

/** @param {string} program @param {readonly string[]} argv @param {string} [cwd] */
async function succeed(program, argv, cwd) {
  const result = await run(program, argv, { timeoutMs: fetchMs, ...(cwd ? { cwd } : {}) });
  if (result.code !== 0) {
    throw new SetupProblem(`Getting docker-compose failed (${program}):\n${complaint(result)}`);
  }
}
