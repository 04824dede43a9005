/** Runs and finds other programs. No imports beyond Node itself: this runs before `npm ci`. */
import { spawn } from 'node:child_process';
import { accessSync, constants, statSync } from 'node:fs';
import { delimiter, join } from 'node:path';

/** System folders that a plain user's PATH often lacks. */
const systemFolders = ['/usr/local/sbin', '/usr/sbin', '/sbin'];

/**
 * @typedef {object} RunOptions
 * @property {string} [cwd]
 * @property {Record<string, string>} [env] Added to this process's variables.
 * @property {number} [timeoutMs] SIGKILL at this limit; none = no limit.
 * @property {boolean} [show] Pass the program's output through to ours as well.
 * @property {(text: string) => void} [onOutput] Each piece of either stream, as it comes.
 */

/**
 * @typedef {object} RunResult
 * @property {number} code Exit code; 127 when the program is absent, 124 when the time was up.
 * @property {string} stdout
 * @property {string} stderr
 */

/**
 * Runs a program to its end. Never rejects.
 *
 * @param {string} program
 * @param {readonly string[]} argv
 * @param {RunOptions} [options]
 * @returns {Promise<RunResult>}
 */
export function run(program, argv, options = {}) {
  return new Promise((resolve) => {
    const child = spawn(program, argv, {
      cwd: options.cwd,
      env: { ...process.env, PATH: searchPath(), ...options.env },
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    let isLate = false;
    const timer =
      options.timeoutMs === undefined
        ? undefined
        : setTimeout(() => {
            isLate = true;
            child.kill('SIGKILL');
          }, options.timeoutMs);
    const output = { stdout: '', stderr: '' };
    for (const name of /** @type {const} */ (['stdout', 'stderr'])) {
      child[name].setEncoding('utf8').on('data', (/** @type {string} */ text) => {
        output[name] += text;
        if (options.show) process[name].write(text);
        options.onOutput?.(text);
      });
    }
    /** @param {number} code @param {string} [reason] */
    const finish = (code, reason) => {
      if (timer) clearTimeout(timer);
      resolve({ code, stdout: output.stdout, stderr: reason ?? output.stderr });
    };
    child.on('error', (error) => finish(127, error.message));
    child.on('close', (code) => finish(isLate ? 124 : (code ?? 1)));
  });
}

/** Our PATH with the system folders behind it. */
export function searchPath() {
  const own = (process.env['PATH'] ?? '').split(delimiter).filter((folder) => folder !== '');
  return [...own, ...systemFolders.filter((folder) => !own.includes(folder))].join(delimiter);
}

/**
 * @param {string} program
 * @returns {string | null} Absolute path.
 */
export function findProgram(program) {
  for (const folder of searchPath().split(delimiter)) {
    const file = join(folder, program);
    try {
      accessSync(file, constants.X_OK);
      if (statSync(file).isFile()) return file;
    } catch {
      continue; // absent here, or not ours to run
    }
  }
  return null;
}

/** The last lines of a program's complaints, for a message. @param {RunResult} result */
export function complaint(result) {
  const lines = (result.stderr.trim() || result.stdout.trim()).split('\n');
  return lines.slice(-6).join('\n');
}
