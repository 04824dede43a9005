/** The command line as a user would run it, and what it leaves. Runs on Slipway's Node, after set-up. */
import { spawn } from 'node:child_process';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import { repositoryDir } from '../setup/repository.js';

export const jobsDir = join(repositoryDir, 'jobs');
export const slipwayProgram = join(repositoryDir, 'bin', 'slipway.js');

/**
 * Runs `slipway …` with our terminal, after showing the command. Ctrl-C reaches it by the terminal; we wait for it to clean up.
 *
 * @param {readonly string[]} argv
 * @returns {Promise<number>} Exit code; 1 when a signal ended it.
 */
export function slipway(argv) {
  console.log(`$ slipway ${argv.map((word) => displayed(word)).join(' ')}\n`);
  return new Promise((resolve, reject) => {
    const child = spawn(process.execPath, [slipwayProgram, ...argv], { stdio: 'inherit' });
    const ignore = () => undefined;
    const forward = () => child.kill('SIGTERM');
    process.on('SIGINT', ignore);
    process.on('SIGTERM', forward);
    child.on('error', reject);
    child.on('close', (code) => {
      process.off('SIGINT', ignore);
      process.off('SIGTERM', forward);
      resolve(code ?? 1);
    });
  });
}

/**
 * Runs `slipway …` and keeps what it prints.
 *
 * @param {readonly string[]} argv
 * @returns {Promise<{ readonly code: number, readonly output: string }>}
 */
export function slipwayOutput(argv) {
  return new Promise((resolve, reject) => {
    const child = spawn(process.execPath, [slipwayProgram, ...argv], {
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    let output = '';
    for (const stream of [child.stdout, child.stderr]) {
      stream.setEncoding('utf8').on('data', (/** @type {string} */ text) => (output += text));
    }
    child.on('error', reject);
    child.on('close', (code) => resolve({ code: code ?? 1, output }));
  });
}

/** @param {string} word A path of the repository is shown from where we are. */
export function displayed(word) {
  return word.startsWith(repositoryDir) ? relative(process.cwd(), word) || '.' : word;
}

/**
 * @param {string} jobName
 * @returns {Map<string, string>} Trial folders by the task's name.
 */
export function trialsOf(jobName) {
  const trials = new Map();
  const jobDir = join(jobsDir, jobName);
  for (const name of existsSync(jobDir) ? readdirSync(jobDir) : []) {
    const file = join(jobDir, name, 'result.json');
    if (!existsSync(file)) continue;
    trials.set(JSON.parse(readFileSync(file, 'utf8')).task_name, join(jobDir, name));
  }
  return trials;
}

/** Now, for a folder's name. */
export function stamp() {
  return new Date().toISOString().replace(/[-:]|\.\d+/g, '');
}
