/** The system programs that environments use, and the packages they come in. */
import { aptInstall, hasApt, rootPrefix } from './apt.js';
import { isDockerAnswering } from './docker-socket.js';
import { findProgram } from './programs.js';
import { SetupProblem } from './step.js';

/**
 * @typedef {object} Need
 * @property {string} program Looked for on PATH.
 * @property {string} package Debian's and Ubuntu's name.
 * @property {string} purpose What does not work without it.
 */

/** @type {readonly Need[]} */
const localNeeds = [
  { program: 'runc', package: 'runc', purpose: 'sandboxes of the local environment' },
  { program: 'buildah', package: 'buildah', purpose: 'images from Dockerfiles without a daemon' },
  { program: 'bwrap', package: 'bubblewrap', purpose: 'the weaker sandbox where runc cannot run' },
  { program: 'newuidmap', package: 'uidmap', purpose: 'sandboxes of users other than root' },
  { program: 'slirp4netns', package: 'slirp4netns', purpose: 'a network for local sandboxes' },
  { program: 'socat', package: 'socat', purpose: 'one host address for a sandbox' },
  { program: 'ip', package: 'iproute2', purpose: 'the network of local sandboxes' },
  { program: 'nsenter', package: 'util-linux', purpose: 'the namespaces of local sandboxes' },
  { program: 'tar', package: 'tar', purpose: 'moving files in and out of sandboxes' },
  { program: 'git', package: 'git', purpose: 'tasks by git reference' },
];

/** @type {readonly Need[]} */
const dockerNeeds = [
  { program: 'dockerd', package: 'docker.io', purpose: 'the docker environment' },
  { program: 'iptables', package: 'iptables', purpose: 'the networks of Docker' },
];

/** @type {readonly Need[]} */
const composeNeeds = [
  { program: 'docker', package: 'docker.io', purpose: 'tasks with side services' },
];

/** @type {readonly Need[]} */
const baseImageNeeds = [
  { program: 'mmdebstrap', package: 'mmdebstrap', purpose: "the bundled tasks' base image" },
  { program: 'flock', package: 'util-linux', purpose: "the bundled tasks' base image" },
];

/** @typedef {'local' | 'docker' | 'compose' | 'base-image'} Want */

/** @param {Want} want @returns {Promise<readonly Need[]>} */
async function needsOf(want) {
  if (want === 'local') return localNeeds;
  if (want === 'compose') return composeNeeds;
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
  const needs = (await Promise.all(wants.map(needsOf))).flat();
  const missing = needs.filter((need) => findProgram(need.program) === null);
  if (missing.length === 0) return 'nothing missing';
  const packages = [...new Set(missing.map((need) => need.package))];
  const prefix = await rootPrefix();
  if (prefix === null || !hasApt()) throw new SetupProblem(askAnAdministrator(missing, packages));
  await aptInstall(packages, prefix);
  const absent = missing.filter((need) => findProgram(need.program) === null);
  if (absent.length > 0) {
    const names = absent.map((need) => need.program).join(', ');
    throw new SetupProblem(`After installing ${packages.join(' ')} still missing: ${names}`);
  }
  return `installed ${packages.join(' ')}`;
}

/**
 * @param {readonly Need[]} missing
 * @param {readonly string[]} packages
 */
function askAnAdministrator(missing, packages) {
  const reason = hasApt()
    ? 'This user is not root and has no sudo without a password. An administrator should run:'
    : 'This system has no apt. Install with its own package manager what these packages hold:';
  return [
    reason,
    '',
    `  apt-get update && apt-get install --no-install-recommends -y ${packages.join(' ')}`,
    '',
    'Until then this does not work:',
    ...missing.map((need) => `  - ${need.purpose} (${need.program})`),
    'Everything else runs.',
  ].join('\n');
}
