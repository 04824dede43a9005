/**
 * `npm test [-- PATTERN…]`: sets this machine up, then checks format, lint and types and runs every test. A pattern is a part of a
 * path, a glob, or the name of a check (`format`, `lint`, `types`, `script-types`); with patterns only what they name runs. Runs on any Node since 16.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { runOnSlipwayNode } from './setup/child.js';
import { allParts, setUp } from './setup/main.js';

/**
 * Every test file and every `slipway` that one starts loads the same modules: what one of them has compiled, the next ones read. A
 * folder of this run alone, for many modules of tests lie in folders that are never seen again.
 */
async function runAll() {
  const compiled = mkdtempSync(join(tmpdir(), 'compiled-for-tests-'));
  try {
    return await runOnSlipwayNode('scripts/test/run-all.js', process.argv.slice(2), {
      NODE_COMPILE_CACHE: compiled,
    });
  } finally {
    rmSync(compiled, { recursive: true, force: true, maxRetries: 10 });
  }
}

const state = await setUp(allParts);
console.log('');
process.exitCode = state === 'failed' ? 1 : await runAll();
