/** `npm run learn`: a policy that learns through the whole of Slipway, and the controls that do not. See `examples/learn`. */
import { runOnSlipwayNode } from './setup/child.js';
import { setUp } from './setup/main.js';

async function main() {
  if ((await setUp([])) === 'failed') return 1;
  return runOnSlipwayNode('examples/learn/main.ts', process.argv.slice(2));
}

process.exitCode = await main();
