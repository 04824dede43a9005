/** `npm run chaos [-- --minutes 30 --seed 1]`: kills, stops and resets over the whole stack, and what must be true afterwards. See `tests/chaos/storm`. */
import { runOnSlipwayNode } from './setup/child.js';
import { allParts, setUp } from './setup/main.js';

async function main() {
  if ((await setUp(allParts)) === 'failed') return 1;
  return runOnSlipwayNode('tests/chaos/storm/main.ts', process.argv.slice(2));
}

process.exitCode = await main();
