import assert from 'node:assert/strict';
import { mkdtemp, readdir, rm } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { after, before, describe, it } from 'node:test';
import { whyNoProot } from '../environments/local/local-bench.ts';
import { bundledTasksDir, slipwayRun, startSlipway } from '../support/slipway-cli.ts';

const task = (name: string): readonly string[] => ['--path', path.join(bundledTasksDir, name)];
const asProcesses = ['--env', 'local', '--ek', 'runtime=process'];

describe('a run of plain processes', { skip: whyNoProot() ?? false, timeout: 120_000 }, () => {
  let root = '';
  let stateDir = '';
  before(async () => {
    root = await mkdtemp(path.join(os.tmpdir(), 'slipway-plain-'));
    stateDir = path.join(root, 'state');
  });
  after(() => rm(root, { recursive: true, force: true }));
  const jobs = (name: string): readonly string[] => [
    ...['--jobs-dir', path.join(root, 'jobs'), '--job-name', name],
  ];

  it('is refused unless it is allowed', async () => {
    const args = [
      'run',
      ...task('file-answer'),
      '-a',
      'oracle',
      ...asProcesses,
      ...jobs('refused'),
    ];
    const { exitCode, stderr } = await startSlipway(args, { stateDir }).ended;
    assert.equal(exitCode, 2);
    assert.match(stderr, /CONFIG_INVALID \[runtime\].*--allow-unsandboxed/);
  });

  it('gives the reward, warns, is marked in the summary and leaves nothing', async () => {
    const args = [
      'run',
      ...task('file-answer'),
      '-a',
      'oracle',
      ...asProcesses,
      ...jobs('allowed'),
    ];
    const run = startSlipway([...args, '--allow-unsandboxed'], { stateDir });
    const { exitCode, stdout, stderr } = await run.ended;
    assert.equal(exitCode, 0, stderr);
    assert.match(stdout, /mean 1 {2}over 1 trial/);
    assert.match(stdout, /isolation: none/);
    assert.match(stderr, /warning: no sandbox/);
    assert.deepEqual(await readdir(path.join(stateDir, 'sandboxes')), []);
  });

  it('refuses a task without a network by its missing capability', async () => {
    const document = await slipwayRun(
      [
        ...task('no-network'),
        '-a',
        'oracle',
        ...asProcesses,
        ...jobs('net'),
        '--allow-unsandboxed',
      ],
      { stateDir },
    );
    assert.equal(document.trials[0]?.failure?.code, 'CAPABILITY_UNSUPPORTED');
  });
});
