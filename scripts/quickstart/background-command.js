/** A `slipway …` that serves beside the run: started on free ports, ended when it is no longer needed. */
import { spawn } from 'node:child_process';
import { createInterface } from 'node:readline';
import { displayed, slipwayProgram } from './slipway-command.js';

const signals = /** @type {const} */ (['SIGINT', 'SIGTERM']);
const startLimitMs = 60_000;
const stopLimitMs = 30_000;

/**
 * Resolves with its first line that names an address.
 *
 * @param {readonly string[]} argv
 * @returns {Promise<{ readonly url: string, readonly stop: () => Promise<void> }>}
 */
export async function startInBackground(argv) {
  const name = `slipway ${argv[0] ?? ''}`;
  console.log(`$ slipway ${argv.map((word) => displayed(word)).join(' ')} &\n`);
  const child = spawn(process.execPath, [slipwayProgram, ...argv], {
    stdio: ['ignore', 'pipe', 'inherit'],
    // Ctrl-C is the run's: it answers until the run has ended, then it is told.
    detached: true,
  });
  const ended = new Promise((resolve) => child.once('close', resolve));
  const force = () => child.kill('SIGKILL');
  process.once('exit', force);
  // Until it is told to stop it belongs to us: an interruption ends what runs against it, and then it is told.
  let isReady = false;
  const interrupted = () => void (isReady || process.exit(130));
  for (const signal of signals) process.on(signal, interrupted);
  const url = await new Promise((resolve, reject) => {
    const late = setTimeout(() => {
      force();
      reject(new Error(`${name} was not ready after ${startLimitMs / 1000} s`));
    }, startLimitMs);
    const settle = () => clearTimeout(late);
    child.once('error', reject);
    void ended.then((code) => {
      settle();
      reject(new Error(`${name} exited with ${String(code)}; what it said is above`));
    });
    createInterface({ input: child.stdout }).on('line', (line) => {
      const found = /http:\/\/[^\s",]+/.exec(line)?.[0];
      if (found === undefined) return;
      settle();
      resolve(found.replace(/\/$/, ''));
    });
  });
  isReady = true;
  return {
    url,
    stop: async () => {
      child.kill('SIGTERM');
      const late = setTimeout(force, stopLimitMs);
      await ended;
      clearTimeout(late);
      process.off('exit', force);
      for (const signal of signals) process.off(signal, interrupted);
    },
  };
}
