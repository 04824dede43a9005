/** What is wrong with the server of an evaluation is found before anything of it is there. */
import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { after, before, describe, it } from 'node:test';
import { Evaluation } from './evaluation.ts';

let root = '';
before(async () => {
  root = await mkdtemp(path.join(os.tmpdir(), 'slipway-begin-'));
});
after(() => rm(root, { recursive: true, force: true }));

const mistakes: readonly (readonly [what: string, table: string, said: RegExp])[] = [
  ['an unknown backend', '[backend]\nkind = "nativ"', /BACKEND_UNKNOWN \[backend\.kind\]/],
  [
    'an unknown agent',
    '[backend.native]\nagent = "terminus-9"',
    /CONFIG_INVALID \[backend\.native[^\]]*\]: .*terminus-9/,
  ],
  [
    'a backend without the workflow that it needs',
    '[backend]\nkind = "local"',
    /CONFIG_INVALID \[backend\.local[^\]]*\]: .*workflow/,
  ],
  [
    'a harbor backend without tasks',
    '[backend]\nkind = "harbor"\n[backend.harbor]\nagent = "oracle"',
    /CONFIG_INVALID \[backend\.harbor[^\]]*\]: .*tasks_dir/,
  ],
  [
    'a key that is not there',
    '[backend]\nkind = "null"\n[telemetry]\notlp_url = "http://127.0.0.1:4318"\notlp_headers = { authorization = "env:NOT_SET" }',
    /CONFIG_INVALID \[telemetry\.otlp_headers\.authorization\]: .*NOT_SET/,
  ],
];

describe('an evaluation whose server could not start', { timeout: 240_000 }, () => {
  for (const [index, [what, table, said]] of mistakes.entries())
    it(`because of ${what} makes no folder and asks nothing`, async () => {
      const evaluation = await Evaluation.of([root, `mistake-${index}`], [{ reward: 1 }]);
      await evaluation.configure('', table);
      const { exitCode, stderr } = await evaluation.run('--yes');
      assert.match(stderr, said);
      assert.notEqual(exitCode, 0);
      assert.doesNotMatch(stderr, /to run/, 'no plan is shown');
      assert.equal(existsSync(path.join(evaluation.dir, '.slipway')), false);
    });
});
