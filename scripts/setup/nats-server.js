/**
 * The server of the queue between hosts, for tests, proofs and benches: the installed one when it is new enough, else the single
 * package of the next Debian release in Slipway's cache.
 */
import { existsSync } from 'node:fs';
import { mkdir, rename } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { cacheDir } from './cache-dir.js';
import { nextSuite, unpackFromNextRelease } from './next-release.js';
import { findProgram, run } from './programs.js';
import { SetupProblem } from './step.js';

/** Older servers leave messages stuck after a crash. */
export const oldestNats = '2.10.27';

function unpackedServer() {
  return join(cacheDir(), `nats-server-${oldestNats}`, 'nats-server');
}

/** @returns {Promise<string | null>} Absolute path of a server that is new enough: the one on PATH, else that of the cache. */
export async function natsServerPath() {
  const installed = findProgram('nats-server');
  if (installed !== null && isNewEnough(await versionOf(installed))) return installed;
  return existsSync(unpackedServer()) ? unpackedServer() : null;
}

/** @returns {Promise<string>} What was done. */
export async function provideNatsServer() {
  const found = await natsServerPath();
  if (found !== null) return found === unpackedServer() ? 'in the cache' : `installed: ${found}`;
  const isUnpacked = await unpackFromNextRelease('nats-server', keep);
  if (!isUnpacked) throw new SetupProblem(remedy());
  return `unpacked nats-server of ${nextSuite} into the cache`;
}

/** @param {string} root */
async function keep(root) {
  const program = join(root, 'usr/sbin/nats-server');
  const version = existsSync(program) ? await versionOf(program) : null;
  if (!isNewEnough(version)) {
    throw new SetupProblem(
      `The package of ${nextSuite} holds nats-server ${version ?? 'that does not run'}.\n${remedy()}`,
    );
  }
  await mkdir(dirname(unpackedServer()), { recursive: true });
  await rename(program, unpackedServer());
}

function remedy() {
  return [
    `Tests of the queue between hosts need nats-server ${oldestNats} or newer, one static program:`,
    'put it on PATH (a package of your distribution, or a release of nats-io/nats-server), or at',
    `  ${unpackedServer()}`,
  ].join('\n');
}

/** @param {string} program @returns {Promise<string | null>} */
async function versionOf(program) {
  const asked = await run(program, ['--version'], { timeoutMs: 10_000 });
  return /v?(\d+\.\d+\.\d+)/.exec(asked.stdout)?.[1] ?? null;
}

/** @param {string | null} version */
export function isNewEnough(version) {
  if (version === null) return false;
  const own = version.split('.').map(Number);
  const needed = oldestNats.split('.').map(Number);
  const at = needed.findIndex((part, index) => (own[index] ?? 0) !== part);
  return at < 0 || (own[at] ?? 0) > (needed[at] ?? 0);
}
