/**
 * Single packages of the next Debian release, for programs that the machine's own release has too old. Only what is linked statically
 * runs on the older release. The machine's apt sources stay as they are; apt checks signatures and hashes as ever.
 */
import { mkdir, readdir, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { debianKeyring, debianMirrors } from './apt.js';
import { cacheDir } from './cache-dir.js';
import { complaint, run } from './programs.js';
import { SetupProblem } from './step.js';

export const nextSuite = 'trixie';
const fetchMs = 120_000;

/**
 * Downloads and unpacks a package in a folder of its own, which goes when `take` is done with it.
 *
 * @param {string} name Of the package.
 * @param {(root: string) => Promise<void>} take Moves what is wanted out of the unpacked tree.
 * @returns {Promise<boolean>} False: this machine knows no Debian mirror. A mirror that fails is a `SetupProblem`.
 */
export async function unpackFromNextRelease(name, take) {
  /** @type {unknown} */
  let problem = null;
  for (const mirror of await debianMirrors()) {
    try {
      await unpackFrom(mirror, name, take);
      return true;
    } catch (error) {
      problem ??= error;
    }
  }
  if (problem !== null) throw problem;
  return false;
}

/** @param {string} mirror @param {string} name @param {(root: string) => Promise<void>} take */
async function unpackFrom(mirror, name, take) {
  const work = join(cacheDir(), `.${name}-${process.pid}`);
  try {
    await mkdir(join(work, 'lists', 'partial'), { recursive: true });
    await fetchPackage(work, mirror, name);
    const archive = (await readdir(work)).find((file) => file.endsWith('.deb'));
    const root = join(work, 'root');
    await succeed(name, ['dpkg-deb', '-x', join(work, archive ?? ''), root]);
    await take(root);
  } finally {
    await rm(work, { recursive: true, force: true });
  }
}

/**
 * Downloads the package with lists, cache and sources of our own.
 *
 * @param {string} work
 * @param {string} mirror
 * @param {string} name
 */
async function fetchPackage(work, mirror, name) {
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
  await succeed(name, ['apt-get', ...settings, 'update']);
  await succeed(name, ['apt-get', ...settings, 'download', name], work);
}

/** @param {string} name @param {readonly string[]} command @param {string} [cwd] */
async function succeed(name, command, cwd) {
  const [program = '', ...argv] = command;
  const result = await run(program, argv, { timeoutMs: fetchMs, ...(cwd ? { cwd } : {}) });
  if (result.code !== 0) {
    throw new SetupProblem(`Getting ${name} failed (${program}):\n${complaint(result)}`);
  }
}
