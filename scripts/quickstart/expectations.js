/** What each bundled task says about itself under `[metadata.slipway]`, and whether a trial's result agrees. */
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parse } from 'smol-toml';
import { repositoryDir } from '../setup/repository.js';

export const bundledTasksDir = join(repositoryDir, 'tasks');

/**
 * @typedef {object} Expectation
 * @property {string} task Its folder's name.
 * @property {string} name `[task].name`, as results carry it.
 * @property {string} feature What it shows.
 * @property {Readonly<Record<string, number>>} oracle Rewards by channel.
 * @property {Readonly<Record<string, number>>} nop
 * @property {readonly string[]} artifacts Paths that the trial's `artifacts/` must hold after the oracle.
 * @property {readonly string[]} absentArtifacts Paths that it must not hold.
 * @property {readonly string[]} refusedBy Environments that refuse the task with CAPABILITY_UNSUPPORTED.
 * @property {boolean} needsStrictIsolation Its reward cannot be had in a sandbox without users of its own or limits.
 */

/** @returns {readonly Expectation[]} One per bundled task, by name. */
export function readExpectations() {
  const folders = readdirSync(bundledTasksDir, { withFileTypes: true });
  return folders.filter((entry) => entry.isDirectory()).map((entry) => readOne(entry.name));
}

/** @param {string} task @returns {Expectation} */
function readOne(task) {
  const toml = /** @type {any} */ (
    parse(readFileSync(join(bundledTasksDir, task, 'task.toml'), 'utf8'))
  );
  const own = toml.metadata.slipway;
  return {
    task,
    name: toml.task.name,
    feature: own.feature,
    oracle: own.oracle,
    nop: own.nop,
    artifacts: own.artifacts ?? [],
    absentArtifacts: own.absent_artifacts ?? [],
    refusedBy: own.refused_by ?? [],
    needsStrictIsolation: own.needs_strict_isolation === true,
  };
}

/**
 * How well the trial's sandbox was closed; null when it had none.
 *
 * @param {string} trialDir
 * @returns {'strict' | 'weak' | 'none' | null}
 */
export function isolationOf(trialDir) {
  return readResult(trialDir).slipway?.environment?.isolation ?? null;
}

/** @param {string} trialDir */
function readResult(trialDir) {
  return JSON.parse(readFileSync(join(trialDir, 'result.json'), 'utf8'));
}

/**
 * Compares a trial with what its task says.
 *
 * @param {Expectation} expected
 * @param {'oracle' | 'nop'} agent
 * @param {string} environment
 * @param {string} trialDir
 * @returns {{ readonly isRefused: boolean, readonly problems: readonly string[] }}
 */
export function judgeTrial(expected, agent, environment, trialDir) {
  const result = readResult(trialDir);
  const code = result.slipway?.failure?.code ?? null;
  if (expected.refusedBy.includes(environment)) {
    const isRefused = code === 'CAPABILITY_UNSUPPORTED' && result.verifier_result === null;
    return { isRefused, problems: isRefused ? [] : ['was not refused as it should be'] };
  }
  const problems = [];
  const rewards = result.verifier_result?.rewards ?? null;
  if (result.exception_info) {
    problems.push(`ended in ${code ?? result.exception_info.exception_type}`);
  } else if (!isSame(rewards, expected[agent])) {
    problems.push(`gave ${JSON.stringify(rewards)}, expected ${JSON.stringify(expected[agent])}`);
  }
  if (agent === 'oracle') problems.push(...artifactProblems(expected, join(trialDir, 'artifacts')));
  return { isRefused: false, problems };
}

/** @param {Expectation} expected @param {string} dir */
function artifactProblems(expected, dir) {
  return [
    ...expected.artifacts
      .filter((path) => !existsSync(join(dir, path)))
      .map((path) => `kept no artifact ${path}`),
    ...expected.absentArtifacts
      .filter((path) => existsSync(join(dir, path)))
      .map((path) => `kept ${path}, which is excluded`),
  ];
}

/** @param {unknown} left @param {Readonly<Record<string, number>>} right */
function isSame(left, right) {
  if (left === null || typeof left !== 'object') return false;
  const found = Object.entries(left);
  return (
    found.length === Object.keys(right).length &&
    found.every(([channel, value]) => right[channel] === value)
  );
}
