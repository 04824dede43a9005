import { startInBackground } from './background-command.js';

/**
 * `slipway engine` beside the run.
 *
 * @param {readonly string[]} flags
 */
export async function startMockEngine(flags) {
  return await startInBackground(['engine', '--port', '0', ...flags]);
}
