/** What the rollouts of the quickstart came to, against what the script of the mock engine says of each task. */

/**
 * @typedef {object} RolloutLine
 * @property {string} task
 * @property {string} id
 * @property {string} status
 * @property {number | null} reward
 * @property {string | null} message
 * @property {number} ms From submission to the last callback.
 */

/**
 * @typedef {object} TaskRow
 * @property {string} task
 * @property {readonly string[]} rewards
 * @property {string} expected
 * @property {string} slowest
 * @property {string} verdict
 * @property {readonly string[]} problems
 */

/**
 * @param {string} output What the controller printed.
 * @returns {RolloutLine[]}
 */
export function readResults(output) {
  return output
    .split('\n')
    .filter((line) => line.startsWith('{'))
    .map((line) => JSON.parse(line));
}

/**
 * @param {string} task
 * @param {readonly RolloutLine[]} results Of all tasks.
 * @param {{ readonly reward: number, readonly rollouts: number }} expected
 * @returns {TaskRow}
 */
export function judgeTask(task, results, expected) {
  const own = results.filter((result) => result.task === task);
  const problems = own
    .filter(({ status, reward }) => status !== 'success' || reward !== expected.reward)
    .map(({ id, status, reward, message }) => {
      const why = message === null ? '' : `: ${message}`;
      return `${id} ended in ${status} with ${reward ?? 'no reward'} for ${expected.reward}${why}`;
    });
  if (new Set(own.map(({ id }) => id)).size !== expected.rollouts) {
    problems.push(`${task} has ${own.length} results, not one each for ${expected.rollouts}`);
  }
  const slowest = Math.max(0, ...own.map(({ ms }) => ms));
  return {
    task,
    rewards: own.map(({ reward }) => (reward === null ? '–' : `${reward}`)),
    expected: `${expected.reward}`,
    slowest: `${(slowest / 1000).toFixed(1)} s`,
    verdict: problems.length === 0 ? 'as expected' : 'not as expected',
    problems,
  };
}

/** @param {readonly TaskRow[]} rows */
export function taskTable(rows) {
  const lines = [
    ['task', 'rewards', 'expected', 'slowest', ''],
    ...rows.map(({ task, rewards, expected, slowest, verdict }) => [
      ...[task, rewards.join('  '), expected, slowest, verdict],
    ]),
  ];
  const widths = [0, 1, 2, 3, 4].map((at) =>
    Math.max(...lines.map((cells) => cells[at]?.length ?? 0)),
  );
  return lines
    .map((cells) =>
      cells
        .map((cell, at) =>
          at === 2 || at === 3 ? cell.padStart(widths[at] ?? 0) : cell.padEnd(widths[at] ?? 0),
        )
        .join('  ')
        .trimEnd(),
    )
    .join('\n');
}
