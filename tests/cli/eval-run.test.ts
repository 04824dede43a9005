/** `slipway eval run` as a process of its own: what a loop without an end would hold up. */
import assert from 'node:assert/strict';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { after, before, describe, it } from 'node:test';
import { startSlipway } from '../support/slipway-cli.ts';

let root = '';
before(async () => {
  root = await mkdtemp(path.join(os.tmpdir(), 'slipway-eval-run-'));
});
after(() => rm(root, { recursive: true, force: true }));

describe('slipway eval run', { timeout: 240_000 }, () => {
  it('ends, and names the flag, where the folder of results cannot be made', async () => {
    await writeFile(path.join(root, 'rows.jsonl'), '{"metadata": {"null": {"reward": 1}}}\n');
    const toml = '[experiment]\ndataset = "rows.jsonl"\n[backend]\nkind = "null"\n';
    await writeFile(path.join(root, 'e.toml'), toml);
    const run = startSlipway(['eval', 'run', 'e.toml', '--yes', '-o', '/proc/nothing'], {
      ...{ stateDir: path.join(root, 'state'), cwd: root },
    });
    const deadline = setTimeout(() => run.child.kill('SIGKILL'), 120_000);
    const { exitCode, stderr } = await run.ended;
    clearTimeout(deadline);
    assert.equal(exitCode, 2, stderr);
    assert.match(stderr, /CONFIG_INVALID \[--output\]: .*\/proc\/nothing cannot hold results/);
  });
});
