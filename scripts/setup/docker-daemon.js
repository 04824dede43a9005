/** A Docker engine to talk to: the running one, else one that we start where nothing else would. A running one is never touched. */
import { spawn } from 'node:child_process';
import { existsSync, openSync } from 'node:fs';
import { mkdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { rootPrefix } from './apt.js';
import { cacheDir } from './cache-dir.js';
import { askDocker, dockerAddress } from './docker-socket.js';
import { findProgram, run, searchPath } from './programs.js';
import { SetupProblem } from './step.js';

const answerMs = 30_000;

/**
 * Ways to start the engine, in order of preference. Machines without netfilter get an engine whose containers have no network of
 * Docker's own.
 */
const variants = [
  { name: 'dockerd', argv: [] },
  { name: 'dockerd without iptables', argv: ['--iptables=false', '--ip6tables=false'] },
  { name: 'dockerd without a bridge', argv: ['--iptables=false', '--bridge=none'] },
];

/** @returns {Promise<string>} What was done. */
export async function provideDocker() {
  const state = await askDocker();
  if (state === 'answers') return 'an engine answers';
  if (state === 'forbidden') throw new SetupProblem(notAllowed());
  if (process.env['DOCKER_HOST']) {
    throw new SetupProblem('No Docker engine answers at the address in DOCKER_HOST.');
  }
  const prefix = await rootPrefix();
  if (prefix === null) {
    throw new SetupProblem(
      'No Docker engine answers and this user may not start one. An administrator should start it\n' +
        '(systemctl start docker) and add this user to the group docker. The local environment needs neither.',
    );
  }
  if (existsSync('/run/systemd/system')) return startByService(prefix);
  if (prefix.length > 0) {
    throw new SetupProblem('No Docker engine answers. Start one as root: sudo dockerd');
  }
  return startDetached();
}

function notAllowed() {
  const address = dockerAddress();
  const socket = address && 'socketPath' in address ? address.socketPath : 'its socket';
  return (
    `This user may not talk to the Docker engine at ${socket}. An administrator should run\n` +
    `  usermod -aG docker ${process.env['USER'] ?? 'THIS_USER'}\n` +
    'and this user should log in again. The local environment does not need it.'
  );
}

/** @param {readonly string[]} prefix */
async function startByService(prefix) {
  const [program = '', ...argv] = [...prefix, 'systemctl', 'start', 'docker'];
  await run(program, argv, { timeoutMs: answerMs });
  if (await answersWithin(answerMs, () => true)) return 'started by systemd';
  throw new SetupProblem('The service docker does not answer; `systemctl status docker` says why.');
}

/** Starts the engine as a process of its own that outlives this one. */
async function startDetached() {
  const program = findProgram('dockerd');
  if (program === null) throw new SetupProblem('dockerd is not installed (package docker.io).');
  await mkdir(cacheDir(), { recursive: true });
  const logFile = join(cacheDir(), 'dockerd.log');
  for (const variant of variants) {
    const log = openSync(logFile, 'a');
    const daemon = spawn(program, variant.argv, {
      detached: true,
      stdio: ['ignore', log, log],
      cwd: '/',
      env: { ...process.env, PATH: searchPath() },
    });
    let isRunning = true;
    daemon.on('exit', () => (isRunning = false));
    daemon.on('error', () => (isRunning = false));
    daemon.unref();
    if (await answersWithin(answerMs, () => isRunning)) return `started ${variant.name}`;
    if (isRunning) break; // alive but silent: starting a second one beside it cannot help
  }
  const tail = (await readFile(logFile, 'utf8')).trim().split('\n').slice(-5).join('\n');
  throw new SetupProblem(`dockerd does not start; its log, ${logFile}, ends with\n${tail}`);
}

/**
 * @param {number} ms
 * @param {() => boolean} isWorthWaiting
 */
async function answersWithin(ms, isWorthWaiting) {
  for (const end = Date.now() + ms; Date.now() < end && isWorthWaiting(); await sleep(200)) {
    if ((await askDocker()) === 'answers') return true;
  }
  return false;
}
