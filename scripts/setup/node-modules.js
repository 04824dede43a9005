import { existsSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { complaint, run } from './programs.js';
import { repositoryDir, slipwayNode } from './repository.js';
import { SetupProblem } from './step.js';

const installMs = 5 * 60_000;

/** Installs the npm packages of the lock file, Node 24 among them, when they are missing or older than the lock. */
export async function provideNodeModules() {
  const lock = join(repositoryDir, 'package-lock.json');
  if (!existsSync(lock)) return 'installed as a package';
  const installed = join(repositoryDir, 'node_modules', '.package-lock.json');
  if (existsSync(installed) && modifiedMs(installed) >= modifiedMs(lock)) return 'up to date';
  const result = await run('npm', ['ci', '--no-audit', '--no-fund'], {
    cwd: repositoryDir,
    timeoutMs: installMs,
  });
  if (result.code !== 0) throw new SetupProblem(`npm ci failed:\n${complaint(result)}`);
  if (!existsSync(slipwayNode)) {
    throw new SetupProblem(
      'npm did not run the install script of the package `node`, which brings Node 24. Allow it and start again:\n' +
        '  npm ci --ignore-scripts=false',
    );
  }
  return 'npm ci';
}

/** @param {string} file */
function modifiedMs(file) {
  return statSync(file).mtimeMs;
}
