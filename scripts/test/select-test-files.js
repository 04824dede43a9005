/** Which test files run, and which of them side by side. */
import { globSync } from 'node:fs';
import { matchesGlob } from 'node:path';
import { repositoryDir } from '../setup/repository.js';

/** Measure times: one file at a time, with nothing beside. */
const measuringFiles = /^tests\/chaos\/(?:flood|streams)\//;

/** Compare the whole machine before and after: one file at a time, with nothing beside that makes sandboxes. */
const aloneFiles = /^tests\/chaos\/(?:killed-|run-leaves-)/;

/** Wait for the Docker engine nearly all of their time: one after the other, beside everything that is not alone. */
const engineFiles = /^tests\/(?:conformance\/docker\.|environments\/docker\/)/;

/** Run real sandboxes, engines and servers, and wait for them much of their time: two at a time, on any machine. */
const pairedFiles = /^tests\/(?:chaos|conformance|integration)\//;

/**
 * @typedef {object} TestPlan Paths relative to the repository.
 * @property {readonly string[]} measuring
 * @property {readonly string[]} alone
 * @property {readonly string[]} engine
 * @property {readonly string[]} paired
 * @property {readonly string[]} plain As many at once as there are processors.
 */

/**
 * @param {readonly string[]} patterns Parts of paths, or globs; none = every file.
 * @returns {TestPlan}
 */
export function selectTestFiles(patterns) {
  const files = globSync('tests/**/*.test.ts', { cwd: repositoryDir }).sort();
  const chosen = files.filter(
    (file) =>
      patterns.length === 0 ||
      patterns.some((pattern) => file.includes(pattern) || matchesGlob(file, pattern)),
  );
  const [measuring, afterMeasuring] = split(chosen, measuringFiles);
  const [alone, afterAlone] = split(afterMeasuring, aloneFiles);
  const [engine, afterEngine] = split(afterAlone, engineFiles);
  const [paired, plain] = split(afterEngine, pairedFiles);
  return { measuring, alone, engine, paired, plain };
}

/** @param {readonly string[]} files @param {RegExp} kind @returns {[string[], string[]]} Those of the kind, and the others. */
function split(files, kind) {
  return [files.filter((file) => kind.test(file)), files.filter((file) => !kind.test(file))];
}
