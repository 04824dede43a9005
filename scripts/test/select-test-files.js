/** Which test files run, and which of them side by side. */
import { globSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { matchesGlob } from 'node:path';
import { repositoryDir } from '../setup/repository.js';

/**
 * Folders whose files use the whole machine (real sandboxes counted before and after, kills, loads): one file at a time. The files
 * of all other folders keep to themselves.
 */
const serialFolders = ['conformance', 'integration', 'chaos'];

/**
 * @typedef {object} TestGroup
 * @property {readonly string[]} files Relative to the repository.
 * @property {number} concurrency Files at once.
 */

/**
 * @param {readonly string[]} patterns Parts of paths, or globs; none = every file.
 * @returns {readonly TestGroup[]}
 */
export function selectTestFiles(patterns) {
  const files = globSync('tests/**/*.test.ts', { cwd: repositoryDir }).sort();
  const chosen = files.filter(
    (file) =>
      patterns.length === 0 ||
      patterns.some((pattern) => file.includes(pattern) || matchesGlob(file, pattern)),
  );
  const isSerial = (/** @type {string} */ file) =>
    serialFolders.some((folder) => file.startsWith(`tests/${folder}/`));
  return [
    { files: chosen.filter((file) => !isSerial(file)), concurrency: availableParallelism() },
    { files: chosen.filter(isSerial), concurrency: 1 },
  ].filter((group) => group.files.length > 0);
}
