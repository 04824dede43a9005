/**
 * The client of Daytona that its makers ship, for the tests: the npm package `@daytonaio/sdk`, which is too large for a development dependency, in a folder of the cache.
 * `tests/environments/daytona/official-client.test.ts` points it at the fake service.
 */
import { existsSync } from 'node:fs';
import { mkdir, rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { cacheDir } from './cache-dir.js';
import { complaint, run } from './programs.js';
import { SetupProblem } from './step.js';

export const daytonaVersion = '0.218.0';
const installMs = 5 * 60_000;

/** Folder that holds `node_modules`. It is complete when it exists. */
export function daytonaPeerDir() {
  return join(cacheDir(), `daytona-sdk-${daytonaVersion}`);
}

/** @returns {Promise<string>} What was done. */
export async function provideDaytonaPeer() {
  if (existsSync(daytonaPeerDir())) return 'in the cache';
  const draft = join(cacheDir(), `.daytona-sdk-${process.pid}`);
  try {
    await mkdir(draft, { recursive: true });
    await writeFile(join(draft, 'package.json'), '{ "private": true }\n');
    const flags = ['--ignore-scripts', '--no-audit', '--no-fund', '--save-exact'];
    const argv = ['install', ...flags, `@daytonaio/sdk@${daytonaVersion}`];
    const result = await run('npm', argv, { cwd: draft, timeoutMs: installMs });
    if (result.code !== 0)
      throw new SetupProblem(
        `npm could not install the client of Daytona, which tests need; see that it reaches its registry: ${complaint(result)}`,
      );
    await rm(daytonaPeerDir(), { recursive: true, force: true });
    await rename(draft, daytonaPeerDir());
  } finally {
    await rm(draft, { recursive: true, force: true });
  }
  return `@daytonaio/sdk ${daytonaVersion} installed`;
}
