/** Must show: quickstart from a clean clone, every show, local and docker; the packed package in an empty folder; a user without sudo. */
import { mkdtemp, rm } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { run, runTestFiles } from './run-test-files.ts';

const root = await mkdtemp(path.join(os.tmpdir(), 'slipway-prove-'));
const clone = path.join(root, 'slipway');
try {
  await run('git', ['clone', '--quiet', path.resolve(import.meta.dirname, '../..'), clone]);
  for (const flags of [
    [],
    ['--', '--env', 'docker'],
    ['--', '--show', 'agents'],
    ['--', '--show', 'agents', '--env', 'docker'],
    ['--', '--show', 'tasks'],
    ['--', '--show', 'tasks', '--env', 'docker'],
  ])
    await run('npm', ['run', 'quickstart', ...flags], clone);
} finally {
  await rm(root, { recursive: true, force: true });
}
await runTestFiles('tests/packaging.test.ts', 'tests/scripts/setup.test.ts');
