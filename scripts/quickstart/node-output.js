import { spawn } from 'node:child_process';
import { displayed } from './slipway-command.js';

/**
 * Runs `node …` after showing the command, and keeps what it prints, which is shown as it comes too. Ctrl-C reaches it by the terminal; we wait for it.
 *
 * @param {readonly string[]} argv
 * @returns {Promise<{ readonly code: number, readonly output: string }>}
 */
export function nodeOutput(argv) {
  console.log(`$ node ${argv.map((word) => displayed(word)).join(' ')}\n`);
  return new Promise((resolve, reject) => {
    const child = spawn(process.execPath, argv, { stdio: ['ignore', 'pipe', 'inherit'] });
    let output = '';
    child.stdout.setEncoding('utf8').on('data', (/** @type {string} */ text) => {
      output += text;
      process.stdout.write(text);
    });
    const ignore = () => undefined;
    const forward = () => child.kill('SIGTERM');
    process.on('SIGINT', ignore);
    process.on('SIGTERM', forward);
    child.on('error', reject);
    child.on('close', (code) => {
      process.off('SIGINT', ignore);
      process.off('SIGTERM', forward);
      resolve({ code: code ?? 1, output });
    });
  });
}
