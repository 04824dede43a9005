/** What set-up prints: one line per step, with its time. */

/** A step that cannot be done here; its message tells the reader what to do. */
export class SetupProblem extends Error {}

/**
 * Runs one step and prints one line about it. A `SetupProblem` is printed and returned, not thrown: later steps may still run.
 *
 * @param {string} title
 * @param {() => Promise<string>} work Resolves with what was done, in a few words.
 * @returns {Promise<SetupProblem | null>}
 */
export async function step(title, work) {
  const startedAt = Date.now();
  try {
    const outcome = await work();
    console.log(`${title.padEnd(18)} ${outcome} (${seconds(startedAt)})`);
    return null;
  } catch (error) {
    if (!(error instanceof SetupProblem)) throw error;
    console.log(`${title.padEnd(18)} not done (${seconds(startedAt)})`);
    console.log(error.message.replace(/^(?=.)/gm, '    '));
    return error;
  }
}

/** @param {number} startedAt */
function seconds(startedAt) {
  return `${((Date.now() - startedAt) / 1000).toFixed(1)} s`;
}
