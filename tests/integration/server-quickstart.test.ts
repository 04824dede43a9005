import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { readdir, readFile, rm } from 'node:fs/promises';
import path from 'node:path';
import { test } from 'node:test';
import { promisify } from 'node:util';
import { whyNoRunc } from '../environments/local/local-bench.ts';
import { repositoryDir } from '../support/slipway-cli.ts';

test(
  'the quickstart of the server brings every rollout from its request to its callbacks, and says where to look next',
  { skip: whyNoRunc() ?? false, timeout: 300_000 },
  async (context) => {
    const tasks = ['partial-reward', 'planted-reward'];
    const { stdout } = await promisify(execFile)(
      process.execPath,
      ['scripts/quickstart/show-server.js', 'local', ...tasks],
      { cwd: repositoryDir },
    );
    const [, archive = ''] =
      /^What is kept of every rollout: (\S+)\/<rollout>\/$/m.exec(stdout) ?? [];
    assert.notEqual(archive, '', stdout);
    const dir = path.join(repositoryDir, archive);
    context.after(() => rm(path.join(dir, '../..'), { recursive: true, force: true }));
    assert.match(stdout, /^partial-reward +0\.25 {2}0\.25 +0\.25 .* as expected$/m);
    assert.match(stdout, /^planted-reward +0 {2}0 +0 .* as expected$/m);
    assert.match(stdout, /^grader +delivered +1 /m);
    const kept = await readdir(dir);
    assert.equal(kept.length, 4);
    for (const rollout of kept) {
      const file = path.join(dir, rollout, 'trajectory.json');
      const { steps } = JSON.parse(await readFile(file, 'utf8')) as { steps: unknown[] };
      assert.ok(steps.length > 1, file);
    }
  },
);
