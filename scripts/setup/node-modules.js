import { existsSync, lstatSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { complaint, run } from './programs.js';
import { repositoryDir, slipwayNode } from './repository.js';
import { SetupProblem } from './step.js';

const installMs = 5 * 60_000;
const modulesDir = join(repositoryDir, 'node_modules');

/** Installs the npm packages of the lock file, Node 24 among them, unless exactly these are there. */
export async function provideNodeModules() {
  const lock = join(repositoryDir, 'package-lock.json');
  if (!existsSync(lock)) return 'installed as a package';
  if (existsSync(slipwayNode) && areInstalled(lock)) return 'up to date';
  if (isLink(modulesDir)) {
    throw new SetupProblem(
      'node_modules is a link to a folder that does not hold what package-lock.json asks for. npm ci would empty that folder:\n' +
        'remove the link, or bring the folder up to date, and start again.',
    );
  }
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

/**
 * Whether npm's own note of what it installed agrees with the lock file. Optional packages may be absent: most are for other
 * platforms.
 *
 * @param {string} lock
 */
function areInstalled(lock) {
  const note = join(modulesDir, '.package-lock.json');
  if (!existsSync(note)) return false;
  const installed = readPackages(note);
  return Object.entries(readPackages(lock)).every(([place, { version, optional }]) => {
    if (place === '') return true; // the repository itself
    const found = installed[place];
    return found === undefined ? optional === true : found.version === version;
  });
}

/**
 * @param {string} file
 * @returns {Readonly<Record<string, { version: string, optional?: boolean }>>} By place in the tree.
 */
function readPackages(file) {
  return JSON.parse(readFileSync(file, 'utf8')).packages;
}

/** @param {string} path */
function isLink(path) {
  return lstatSync(path, { throwIfNoEntry: false })?.isSymbolicLink() === true;
}
