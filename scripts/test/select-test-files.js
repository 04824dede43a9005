/** Which test files run, and which of them side by side. */
import { globSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { matchesGlob } from 'node:path';
import { repositoryDir } from '../setup/repository.js';

/** Folders whose files compare the whole machine before and after, or measure it: one file at a time, at the end. */
const serialFolders = ['chaos'];

/** Folders whose files run real sandboxes, engines and servers, and mostly wait for them: two at a time, on any machine. */
const pairedFolders = ['conformance', 'integration'];

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
  const isIn = (/** @type {readonly string[]} */ folders) => (/** @type {string} */ file) =>
    folders.some((folder) => file.startsWith(`tests/${folder}/`));
  const isSerial = isIn(serialFolders);
  const isPaired = isIn(pairedFolders);
  return [
    {
      files: chosen.filter((file) => !isSerial(file) && !isPaired(file)),
      concurrency: availableParallelism(),
    },
    { files: chosen.filter(isPaired), concurrency: 2 },
    { files: chosen.filter(isSerial), concurrency: 1 },
  ].filter((group) => group.files.length > 0);
}
