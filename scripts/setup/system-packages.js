/** The system programs that environments use, and the packages they come in. */
import { existsSync } from 'node:fs';
import { aptInstall, debianKeyring, hasApt, rootPrefix } from './apt.js';
import { baseImageArchive } from './base-image-archive.js';
import { isDockerAnswering } from './docker-socket.js';
import { findProgram } from './programs.js';
import { SetupProblem } from './step.js';

/**
 * @typedef {object} Need
 * @property {string} program Looked for on PATH; an absolute path is looked for as it is.
 * @property {string} package Debian's and Ubuntu's name.
 * @property {string} purpose What does not work without it.
 */

/** @type {readonly Need[]} */
const localNeeds = [
  { program: 'runc', package: 'runc', purpose: 'sandboxes of the local environment' },
  { program: 'buildah', package: 'buildah', purpose: 'images from Dockerfiles without a daemon' },
  { program: 'newuidmap', package: 'uidmap', purpose: 'images built by users other than root' },
  { program: 'tini-static', package: 'tini', purpose: 'an init for local sandboxes' },
  { program: 'slirp4netns', package: 'slirp4netns', purpose: 'a network for local sandboxes' },
  { program: 'socat', package: 'socat', purpose: 'one host address for a sandbox' },
  { program: 'ip', package: 'iproute2', purpose: 'loopback in local sandboxes' },
  { program: 'nsenter', package: 'util-linux', purpose: 'the namespaces of local sandboxes' },
  { program: 'mkfs.ext4', package: 'e2fsprogs', purpose: 'a limit on the disk of a sandbox' },
  { program: 'proot', package: 'proot', purpose: 'plain processes (--allow-unsandboxed)' },
  { program: 'tar', package: 'tar', purpose: 'moving files in and out of sandboxes' },
  { program: 'git', package: 'git', purpose: 'tasks by git reference' },
];

/** @type {readonly Need[]} */
const dockerNeeds = [
  { program: 'dockerd', package: 'docker.io', purpose: 'the docker environment' },
  { program: 'iptables', package: 'iptables', purpose: 'the networks of Docker' },
];

/** @type {readonly Need[]} */
const testNeeds = [
  { program: 'bwrap', package: 'bubblewrap', purpose: 'tests that play a user without rights' },
  { program: 'git-lfs', package: 'git-lfs', purpose: 'tests of tasks with large files' },
];

/** @type {readonly Need[]} */
const baseImageNeeds = [
  { program: 'mmdebstrap', package: 'mmdebstrap', purpose: "the bundled tasks' base image" },
  { program: 'flock', package: 'util-linux', purpose: "the bundled tasks' base image" },
  {
    program: debianKeyring() ?? '/usr/share/keyrings/debian-archive-keyring.gpg',
    package: 'debian-archive-keyring',
    purpose: 'the signatures of the packages in that image',
  },
];

/** @param {Need} need */
function isMissing(need) {
  return need.program.startsWith('/') ? !existsSync(need.program) : !findProgram(need.program);
}

/** @typedef {'local' | 'docker' | 'compose' | 'tests' | 'base-image'} Want */

/** @param {Want} want @returns {Promise<readonly Need[]>} */
async function needsOf(want) {
  if (want === 'local') return localNeeds;
  if (want === 'compose') return []; // the plugin comes in a step of its own
  if (want === 'tests') return testNeeds;
  if (want === 'base-image') return baseImageNeeds;
  return (await isDockerAnswering()) ? [] : dockerNeeds;
}

/**
 * Installs what is missing for the wants; what is on PATH already is left alone.
 *
 * @param {readonly Want[]} wants
 * @returns {Promise<string>} What was done.
 */
export async function provideSystemPackages(wants) {
  const missing = await missingFor(wants);
  if (missing.length === 0) return 'nothing missing';
  const packages = [...new Set(missing.map((need) => need.package))];
  const prefix = await rootPrefix();
  if (prefix === null || !hasApt()) throw new SetupProblem(await askAnAdministrator(wants));
  await aptInstall(packages, prefix);
  const absent = missing.filter(isMissing);
  if (absent.length > 0) {
    const names = absent.map((need) => need.program).join(', ');
    throw new SetupProblem(`After installing ${packages.join(' ')} still missing: ${names}`);
  }
  return `installed ${packages.join(' ')}`;
}

/** @param {readonly Want[]} wants */
async function missingFor(wants) {
  const needs = (await Promise.all(wants.map(needsOf))).flat();
  return needs.filter(isMissing);
}

/**
 * What to tell a user who may not install packages: one command with everything, what it is for, and what works without it.
 *
 * @param {readonly Want[]} wants
 */
async function askAnAdministrator(wants) {
  const isBaseImageThere = existsSync(baseImageArchive());
  const missing = await missingFor(
    isBaseImageThere ? wants : [.../** @type {Set<Want>} */ (new Set([...wants, 'base-image']))],
  );
  const packages = [...new Set(missing.map((need) => need.package))];
  return [
    hasApt()
      ? 'This user is not root and has no sudo without a password. An administrator should run:'
      : 'This system has no apt. Install with its own package manager what these packages hold:',
    '',
    `  apt-get update && apt-get install --no-install-recommends -y ${packages.join(' ')}`,
    '',
    'Until then these are missing:',
    ...missing.map((need) => `  - ${need.program}: ${need.purpose}`),
    'What works without them:',
    ...(await worksAnyway()).map((what) => `  - ${what}`),
  ].join('\n');
}

/** @returns {Promise<readonly string[]>} */
async function worksAnyway() {
  const works = ['reading and checking tasks, and every test that starts no sandbox'];
  if (await isDockerAnswering()) works.push('the docker environment');
  const strict = ['runc', 'crun'].find((program) => findProgram(program));
  if (strict && process.getuid?.() === 0) {
    works.push(`sandboxes of the local environment (${strict})`);
  } else if (findProgram('unshare')) {
    works.push('local sandboxes with weaker isolation, where user namespaces are allowed');
  }
  return works;
}
