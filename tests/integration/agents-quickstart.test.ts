import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { rm } from 'node:fs/promises';
import path from 'node:path';
import { test } from 'node:test';
import { promisify } from 'node:util';
import { trajectoriesOf } from '../../scripts/quickstart/sampled-tokens.js';
import { whyNoRunc } from '../environments/local/local-bench.ts';
import { validateWithPeers } from '../support/atif-peers.ts';
import { repositoryDir } from '../support/slipway-cli.ts';

test(
  'the quickstart of agents ends as its script says, with trajectories that every validator accepts',
  { skip: whyNoRunc() ?? false, timeout: 300_000 },
  async (context) => {
    const { stdout } = await promisify(execFile)(
      process.execPath,
      ['scripts/quickstart/show-agents.js', 'local'],
      { cwd: repositoryDir },
    );
    const [, job = ''] = /^Trajectories: (\S+)\/<trial>/m.exec(stdout) ?? [];
    assert.notEqual(job, '', stdout);
    const dir = path.join(repositoryDir, job);
    context.after(async () => {
      await rm(dir, { recursive: true, force: true });
      await rm(`${dir}.engine.ndjson`, { force: true });
    });
    assert.match(stdout, /trajectories, every one is valid\.\n/);
    assert.match(stdout, /hold the engine's ids and log-probabilities: \d+ calls/);
    await validateWithPeers(trajectoriesOf(dir));
  },
);
