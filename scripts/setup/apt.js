/** The machine's own package manager: what it may do, which mirror it uses, installing. Debian and its relatives only. */
import { existsSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { complaint, findProgram, run } from './programs.js';
import { SetupProblem } from './step.js';

const updateMs = 120_000;
const installMs = 240_000;

export const hasApt = () => findProgram('apt-get') !== null;

/**
 * How to become root: nothing to add, `sudo` without a password, or null when this user cannot.
 *
 * @returns {Promise<readonly string[] | null>} Words to put before a command.
 */
export async function rootPrefix() {
  if (process.getuid?.() === 0) return [];
  if (!findProgram('sudo')) return null;
  const asked = await run('sudo', ['--non-interactive', 'true'], { timeoutMs: 5_000 });
  return asked.code === 0 ? ['sudo', '--non-interactive'] : null;
}

/**
 * Installs packages of the machine's own sources, without their recommendations. Lists are fetched anew only when a package is
 * unknown or its file has left the mirror.
 *
 * @param {readonly string[]} packages
 * @param {readonly string[]} prefix From `rootPrefix`.
 */
export async function aptInstall(packages, prefix) {
  const isKnown = await Promise.all(packages.map(async (name) => (await candidate(name)) !== null));
  if (!isKnown.every(Boolean)) await aptUpdate(prefix);
  let result = await install(packages, prefix);
  if (result.code !== 0 && isKnown.every(Boolean)) {
    await aptUpdate(prefix);
    result = await install(packages, prefix);
  }
  if (result.code !== 0) {
    throw new SetupProblem(`apt-get install ${packages.join(' ')} failed:\n${complaint(result)}`);
  }
}

/** @param {readonly string[]} packages @param {readonly string[]} prefix */
function install(packages, prefix) {
  return asRoot(
    prefix,
    [
      ...['env', 'DEBIAN_FRONTEND=noninteractive', 'NEEDRESTART_MODE=l', 'apt-get', 'install'],
      ...['--yes', '--no-install-recommends', '-o', 'DPkg::Lock::Timeout=120', '--', ...packages],
    ],
    installMs,
  );
}

/** @param {readonly string[]} prefix */
async function aptUpdate(prefix) {
  const result = await asRoot(prefix, ['apt-get', 'update'], updateMs);
  // One dead source among several is not our concern as long as the packages are found.
  if (result.code === 124) throw new SetupProblem('apt-get update did not end in time');
}

/**
 * @param {readonly string[]} prefix
 * @param {readonly string[]} command
 * @param {number} timeoutMs
 */
function asRoot(prefix, command, timeoutMs) {
  const [program = '', ...argv] = [...prefix, ...command];
  return run(program, argv, { timeoutMs });
}

/**
 * @param {string} name
 * @returns {Promise<string | null>} The version that would be installed.
 */
export async function candidate(name) {
  const policy = await run('apt-cache', ['policy', name], { env: { LC_ALL: 'C' } });
  const version = /^ {2}Candidate: (\S+)/m.exec(policy.stdout)?.[1];
  return version === undefined || version === '(none)' ? null : version;
}

/**
 * The mirrors that the machine's own Debian sources may be served from, the likeliest first, so that what we fetch beside them comes
 * from the same place.
 *
 * @returns {Promise<readonly string[]>} URIs; none on a machine whose sources are not Debian's.
 */
export async function debianMirrors() {
  if (!hasApt()) return [];
  const mirrors = await fetchedMirrors();
  return mirrors.length > 0 ? mirrors : configuredMirrors();
}

/** By the lists that were fetched: these name their origin. */
async function fetchedMirrors() {
  const format = '$(ORIGIN)|$(LABEL)|$(COMPONENT)|$(REPO_URI)';
  const targets = await run('apt-get', ['indextargets', '--format', format]);
  const prefix = 'Debian|Debian|main|';
  const lines = targets.stdout.split('\n').filter((line) => line.startsWith(prefix));
  return [...new Set(lines.map((line) => line.slice(prefix.length)))];
}

/** Before any list was fetched: by the suite's name, which other vendors use as well, so not every one of these holds Debian. */
async function configuredMirrors() {
  const release = await readFile('/etc/os-release', 'utf8').catch(() => '');
  const codename = /^VERSION_CODENAME=(\S+)/m.exec(release)?.[1];
  if (!/^ID=debian$/m.test(release) || codename === undefined) return [];
  const wanted = await run('apt-get', ['update', '--print-uris']);
  const ending = `/dists/${codename}/InRelease`;
  return [...wanted.stdout.matchAll(/^'([^']+)'/gm)]
    .map(([, uri = '']) => uri)
    .filter((uri) => uri.endsWith(ending))
    .map((uri) => uri.slice(0, -ending.length));
}

/** The keyring that signs Debian's releases; null where it is not installed. */
export function debianKeyring() {
  const files = ['gpg', 'pgp'].map((end) => `/usr/share/keyrings/debian-archive-keyring.${end}`);
  return files.find((file) => existsSync(file)) ?? null;
}
