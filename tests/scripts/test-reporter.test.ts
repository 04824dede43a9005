import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { after, before, describe, it, run } from 'node:test';
import { Reporter, type Tally } from '../../scripts/test/reporter.js';

const files = {
  'good.test.mjs': `
    import { describe, it } from 'node:test';
    describe('outer', () => { it('passes', () => {}); it('waits', { skip: 'needs a moon' }, () => {}); });`,
  'bad.test.mjs': `
    import assert from 'node:assert/strict';
    import { describe, it } from 'node:test';
    console.log('a hint from the file');
    describe('outer', () => { it('fails', () => { assert.equal(1, 2); }); it('passes', () => {}); });`,
  'crash.test.mjs': `throw new Error('at import');`,
  'empty.test.mjs': `export {};`,
};

describe('the test reporter', () => {
  let dir = '';
  let report = '';
  let failures = '';
  let tally: Tally = { passed: 0, failed: 0, skipped: 0 };

  before(async () => {
    dir = mkdtempSync(path.join(os.tmpdir(), 'slipway-reporter-'));
    const lines: string[] = [];
    const reporter = new Reporter({ isVerbose: false, print: (line) => lines.push(line) });
    for (const [name, source] of Object.entries(files)) {
      writeFileSync(path.join(dir, name), source);
    }
    const paths = Object.keys(files).map((name) => path.join(dir, name));
    // A run inside of a test would otherwise be taken for a part of it.
    delete process.env['NODE_TEST_CONTEXT'];
    for await (const event of run({ files: paths })) reporter.see(event as never);
    tally = reporter.finish();
    report = lines.join('\n');
    failures = reporter.failures.join('\n');
  });

  after(() => {
    rmSync(dir, { recursive: true, force: true });
  });

  it('counts leaves, files that crash and files without a test', () => {
    assert.deepEqual(tally, { passed: 2, failed: 3, skipped: 1 });
  });

  it('prints a line per file', () => {
    assert.match(report, /✔ \S*good\.test\.mjs {2}1 passed, 1 skipped \(\d+\.\d s\)/);
    assert.match(report, /✖ \S*bad\.test\.mjs {2}1 passed, 1 failed \(\d+\.\d s\)/);
  });

  it('prints failures in full, with the suites around them and what the file printed', () => {
    assert.match(report, /✖ outer › fails/);
    assert.match(report, /1 !== 2/);
    assert.match(report, /a hint from the file/);
    assert.match(report, /Error: at import|at import/);
    assert.match(report, /it holds no test/);
  });

  it('says again at the end what failed, with its file, and nothing else', () => {
    assert.match(failures, /✖ \S*bad\.test\.mjs.*\n {2}✖ outer › fails[^]*1 !== 2/);
    assert.match(failures, /✖ \S*crash\.test\.mjs/);
    assert.match(failures, /✖ \S*empty\.test\.mjs.*\n {2}✖ it holds no test/);
    assert.doesNotMatch(failures, /good\.test|a hint from the file/);
  });

  it('prints skipped tests with their reason', () => {
    assert.match(report, /skipped: outer › waits \(needs a moon\)/);
  });
});
