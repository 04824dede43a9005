/** What terminus-2 came to under the scripted policy, against what the script says of each task. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { isolationOf } from './expectations.js';

/**
 * @typedef {object} Row
 * @property {string} task
 * @property {string} reward
 * @property {string} expected
 * @property {string} turns
 * @property {string} tokensIn
 * @property {string} tokensOut
 * @property {string} time
 * @property {string} verdict
 * @property {boolean} isProblem
 */

/**
 * @param {import('./expectations.js').Expectation} task
 * @param {number} expected The script's.
 * @param {{ readonly environment: string, readonly trialDir: string | undefined }} found
 * @returns {Row}
 */
export function judgeAgentTrial(task, expected, { environment, trialDir }) {
  const blank = { turns: '–', tokensIn: '–', tokensOut: '–', time: '–' };
  if (trialDir === undefined) {
    const verdict = 'has no result';
    return {
      task: task.task,
      reward: '–',
      expected: `${expected}`,
      ...blank,
      verdict,
      isProblem: true,
    };
  }
  const result = JSON.parse(readFileSync(join(trialDir, 'result.json'), 'utf8'));
  const code = result.slipway?.failure?.code ?? result.exception_info?.exception_type ?? null;
  const reward = result.verifier_result?.rewards?.reward ?? null;
  const row = { task: task.task, reward: reward === null ? '–' : `${reward}`, ...usageOf(result) };
  if (task.refusedBy.includes(environment)) {
    const isRefused = code === 'CAPABILITY_UNSUPPORTED' && reward === null;
    const verdict = isRefused ? 'refused, as it should be' : 'was not refused';
    return { ...row, expected: 'none', verdict, isProblem: !isRefused };
  }
  if (code === null && reward === expected) {
    return { ...row, expected: `${expected}`, verdict: 'as expected', isProblem: false };
  }
  const isolation = isolationOf(trialDir);
  const isExcused = task.needsStrictIsolation && (isolation === 'weak' || isolation === 'none');
  const verdict = isExcused ? 'beyond weaker sandboxes' : (code ?? 'not as expected');
  return { ...row, expected: `${expected}`, verdict, isProblem: !isExcused };
}

/** @param {any} result */
function usageOf(result) {
  const parts = result.agent_result
    ? [result.agent_result]
    : (result.step_results ?? []).map((/** @type {any} */ step) => step.agent_result ?? {});
  const sum = (/** @type {(part: any) => unknown} */ pick) => {
    /** @type {number[]} */
    const known = parts.map(pick).filter((/** @type {unknown} */ n) => typeof n === 'number');
    return known.length === 0 ? '–' : `${known.reduce((a, b) => a + b, 0)}`;
  };
  const ms = result.slipway?.phase_times?.total_ms;
  return {
    turns: sum((part) => part.metadata?.n_episodes),
    tokensIn: sum((part) => part.n_input_tokens),
    tokensOut: sum((part) => part.n_output_tokens),
    time: ms === undefined ? '–' : `${(ms / 1000).toFixed(1)} s`,
  };
}

/** @param {readonly Row[]} rows */
export function agentTable(rows) {
  const columns = /** @type {const} */ ([
    ['task', 'task'],
    ['reward', 'reward'],
    ['expected', 'expected'],
    ['turns', 'turns'],
    ['tokens in', 'tokensIn'],
    ['out', 'tokensOut'],
    ['time', 'time'],
    ['', 'verdict'],
  ]);
  const lines = [
    columns.map(([heading]) => heading),
    ...rows.map((row) => columns.map(([, field]) => row[field])),
  ];
  const widths = columns.map((_, at) =>
    Math.max(...lines.map((cells) => (cells[at] ?? '').length)),
  );
  return lines
    .map((cells) =>
      cells
        .map((cell, at) =>
          at === 0 || at === columns.length - 1
            ? cell.padEnd(widths[at] ?? 0)
            : cell.padStart(widths[at] ?? 0),
        )
        .join('  ')
        .trimEnd(),
    )
    .join('\n');
}
