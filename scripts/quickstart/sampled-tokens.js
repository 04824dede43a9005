/** Whether the trajectories of a job hold exactly what the engine's log says it sampled: every call once, number for number. */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

/**
 * @typedef {object} Comparison
 * @property {number} calls
 * @property {number} tokens
 * @property {number} nonCanonical Replies whose ids are not those of encoding their text.
 * @property {readonly string[]} problems
 */

/**
 * @param {string} logFile
 * @param {readonly string[]} trajectories
 * @returns {Comparison}
 */
export function compareWithLog(logFile, trajectories) {
  const log = readFileSync(logFile, 'utf8').trimEnd().split('\n').filter(Boolean).map(parse);
  /** @type {Map<string, number>} */
  const unseen = new Map();
  for (const line of log) add(unseen, keyOf(line.prompt_ids, line.output_ids, line.logprobs), 1);
  const problems = [];
  for (const file of trajectories) {
    for (const step of parse(readFileSync(file, 'utf8')).steps) {
      const metrics = step.metrics ?? {};
      if (step.source !== 'agent' || step.is_copied_context) continue;
      const { prompt_token_ids, completion_token_ids, logprobs } = metrics;
      const key = keyOf(prompt_token_ids, completion_token_ids, logprobs);
      if ((unseen.get(key) ?? 0) > 0) add(unseen, key, -1);
      else problems.push(`${file}: step ${step.step_id} holds ids that the engine did not sample`);
    }
  }
  const lost = [...unseen.values()].reduce((sum, count) => sum + count, 0);
  if (lost > 0) problems.push(`${lost} calls of the engine's log are in no trajectory`);
  return {
    calls: log.length,
    tokens: log.reduce((sum, line) => sum + line.output_ids.length, 0),
    nonCanonical: log.filter((line) => !line.canonical).length,
    problems,
  };
}

/**
 * Every trajectory document of a trial, those of summarisation included; of each step of a task its own.
 *
 * @param {string} trialDir
 * @returns {string[]}
 */
export function trajectoriesOf(trialDir) {
  return readdirSync(trialDir, { recursive: true, encoding: 'utf8' })
    .filter((name) => /(^|\/)agent\/trajectory[^/]*\.json$/.test(name))
    .sort()
    .map((name) => join(trialDir, name));
}

/** @param {string} text */
function parse(text) {
  return /** @type {any} */ (JSON.parse(text));
}

/** @param {Map<string, number>} counts @param {string} key @param {number} by */
function add(counts, key, by) {
  counts.set(key, (counts.get(key) ?? 0) + by);
}

/** @param {...(readonly number[] | null | undefined)} lists */
function keyOf(...lists) {
  return lists.map((list) => (list ?? ['none']).map(exact).join(',')).join(';');
}

/** JSON has no -0 of its own. @param {number | string} value */
function exact(value) {
  return Object.is(value, -0) ? '-0' : String(value);
}
