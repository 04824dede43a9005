/** @typedef {{ readonly passed: number, readonly failed: number, readonly skipped: number }} Tally */

/** @type {Tally} */
export const emptyTally = { passed: 0, failed: 0, skipped: 0 };

/** @param {Tally} left @param {Tally} right @returns {Tally} */
export function addTally(left, right) {
  return {
    passed: left.passed + right.passed,
    failed: left.failed + right.failed,
    skipped: left.skipped + right.skipped,
  };
}

/** One line of the report: sign, what, how it went, time. @param {string} title @param {Tally} tally @param {number} ms */
export function resultLine(title, tally, ms) {
  const parts = [`${tally.passed} passed`];
  if (tally.failed > 0) parts.push(`${tally.failed} failed`);
  if (tally.skipped > 0) parts.push(`${tally.skipped} skipped`);
  const sign = tally.failed > 0 ? '✖' : '✔';
  return `${sign} ${title}  ${parts.join(', ')} (${(ms / 1000).toFixed(1)} s)`;
}
