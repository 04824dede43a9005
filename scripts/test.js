/**
 * `npm test [-- PATTERN…]`: sets this machine up, then checks format, lint and types and runs every test. A pattern is a part of a
 * path, a glob, or the name of a check (`format`, `lint`, `types`, `script-types`); with patterns only what they name runs. Runs on any Node since 16.
 */
import { runOnSlipwayNode } from './setup/child.js';
import { allParts, setUp } from './setup/main.js';

const state = await setUp(allParts);
console.log('');
process.exitCode =
  state === 'failed' ? 1 : await runOnSlipwayNode('scripts/test/run-all.js', process.argv.slice(2));
