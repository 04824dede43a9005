import assert from 'node:assert/strict';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, it } from 'node:test';
import { readSecrets, secretFiles } from '../../../src/config/serve/read-secrets.ts';

let baseDir = '';
before(async () => {
  baseDir = await mkdtemp(join(tmpdir(), 'secrets-'));
  await writeFile(join(baseDir, 'keys'), '# old\nfirst-key\n\n second-key \r\n');
  await writeFile(join(baseDir, 'empty'), '# nothing\n');
  await writeFile(join(baseDir, 'bell'), 'two\u0007words\n');
});
after(() => rm(baseDir, { recursive: true, force: true }));

const sources = () => ({ variables: { KEY: ' from-variable\n', EMPTY: '' }, baseDir });

it('secrets come from variables and from files with one per line, comments left out', async () => {
  assert.deepEqual(await readSecrets({ a: ['env:KEY', 'file:keys'], b: [] }, sources()), {
    a: ['from-variable', 'first-key', 'second-key'],
    b: [],
  });
});

it('every place that cannot be used is named by its setting, and no secret is repeated', async () => {
  const places = {
    a: ['env:EMPTY'],
    b: ['env:MISSING'],
    c: ['file:missing'],
    d: ['file:empty'],
    e: ['file:bell'],
  };
  await assert.rejects(readSecrets(places, sources()), (error: Error & { detail?: string }) => {
    for (const name of Object.keys(places))
      assert.match(error.detail ?? '', new RegExp(`\\[${name}\\]`));
    assert.doesNotMatch(error.detail ?? '', /words/);
    return true;
  });
});

it('files among the places are known, so that a change of one can be seen', () => {
  assert.deepEqual(
    secretFiles({ a: ['env:KEY', 'file:keys'], b: ['file:/abs', 'file:keys'] }, '/x'),
    ['/x/keys', '/abs'],
  );
});
