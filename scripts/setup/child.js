import { spawn } from 'node:child_process';
import { delimiter, join } from 'node:path';
import { imageArchivesDir } from './base-image-archive.js';
import { composeConfigDir } from './compose-plugin.js';
import { searchPath } from './programs.js';
import { repositoryDir, slipwayNode } from './repository.js';

/**
 * Runs a script of the repository on Slipway's own Node, with our terminal, and resolves with its exit code. Ctrl-C reaches it by
 * the terminal; we wait for it to clean up.
 *
 * @param {string} script Relative to the repository.
 * @param {readonly string[]} argv
 * @param {Record<string, string>} [env] Added to this process's variables.
 * @returns {Promise<number>}
 */
export function runOnSlipwayNode(script, argv, env = {}) {
  return new Promise((resolve, reject) => {
    const child = spawn(slipwayNode, [join(repositoryDir, script), ...argv], {
      stdio: 'inherit',
      env: {
        SLIPWAY_IMAGE_ARCHIVES: imageArchivesDir(),
        ...process.env,
        PATH: childPath(),
        ...env,
      },
    });
    const ignore = () => undefined;
    const forward = () => child.kill('SIGTERM');
    process.on('SIGINT', ignore);
    process.on('SIGTERM', forward);
    child.on('error', reject);
    child.on('close', (code, signal) => {
      process.off('SIGINT', ignore);
      process.off('SIGTERM', forward);
      resolve(code ?? (signal === 'SIGINT' ? 130 : 1));
    });
  });
}

/** Our PATH, with the repository's own programs first and the compose plugin of the cache behind. */
function childPath() {
  return [
    join(repositoryDir, 'node_modules', '.bin'),
    searchPath(),
    join(composeConfigDir(), 'cli-plugins'),
  ].join(delimiter);
}
