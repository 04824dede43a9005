/** Which files are the user's code of an evaluation, whose change ends it, and which are not. */
import assert from 'node:assert/strict';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { after, before, describe, it } from 'node:test';
import { sourceDigest } from '../../../src/app/eval/source-digest.ts';
import { compileEvalConfig } from '../../../src/config/eval/read-eval-config.ts';
import { readMachine } from '../../../src/config/machine.ts';

let root = '';
before(async () => {
  root = await mkdtemp(path.join(os.tmpdir(), 'slipway-source-'));
  for (const dir of ['src', 'lib', '.slipway/evals/e', 'src/__pycache__'])
    await mkdir(path.join(root, dir), { recursive: true });
});
after(() => rm(root, { recursive: true, force: true }));

async function digest(backend: object, python: object = {}): Promise<string> {
  const document = { experiment: { dataset: 'rows.jsonl' }, backend, python };
  const machine = readMachine({ HOME: root }, root);
  const file = path.join(root, 'e.toml');
  return await sourceDigest(compileEvalConfig({ flags: {}, document, file }, machine));
}

const local = (workflow: string): object => ({ kind: 'local', local: { workflow } });

const rows: readonly (readonly [
  what: string,
  given: readonly [backend: object, python?: object],
  file: string,
  counts: boolean,
])[] = [
  ['a file beside the workflow', [local('src/flow.ts:Flow')], 'src/other.ts', true],
  ['a file of another folder', [local('src/flow.ts:Flow')], 'lib/other.ts', false],
  ['a module beside the configuration', [local('flow:Flow')], 'flow.py', true],
  ['a package beside the configuration', [local('src.flow:Flow')], 'src/flow.py', true],
  ['a folder of python.path', [local('flow:Flow'), { path: ['lib'] }], 'lib/flow.py', true],
  ['compiled Python', [local('src/flow.py:Flow')], 'src/__pycache__/flow.py', false],
  ['the results', [local('flow.ts:Flow')], '.slipway/evals/e/metrics.json', false],
  ['the configuration itself', [local('flow.ts:Flow')], 'e.toml', false],
  ['a task of the backend native', [{ kind: 'native' }], 'flow.py', false],
];

describe('the code of an evaluation', () => {
  for (const [what, given, file, counts] of rows)
    it(`${counts ? 'has' : 'does not have'} ${what} in it`, async () => {
      await writeFile(path.join(root, file), 'one');
      const before = await digest(...given);
      assert.equal(await digest(...given), before);
      await writeFile(path.join(root, file), 'two');
      assert.equal((await digest(...given)) !== before, counts);
      await rm(path.join(root, file));
    });
});
