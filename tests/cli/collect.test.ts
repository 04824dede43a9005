import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { after, before, describe, it } from 'node:test';
import { promisify } from 'node:util';
import type { CollectedBatchLine, CollectedGroupLine } from '../../src/wire/api/collected-lines.ts';
import { startServeProcess } from '../support/serve-process.ts';
import { repositoryDir } from '../support/slipway-cli.ts';

const slipway = async (argv: readonly string[]): Promise<{ stdout: string; stderr: string }> =>
  await promisify(execFile)(process.execPath, [
    path.join(repositoryDir, 'bin/slipway.js'),
    ...argv,
  ]);

describe('slipway collect', () => {
  let dir = '';
  let server: Awaited<ReturnType<typeof startServeProcess>>;

  before(async () => {
    dir = mkdtempSync(path.join(os.tmpdir(), 'slipway-collect-'));
    server = await startServeProcess(['--backend', 'null'], { stateDir: dir });
    const rows = Array.from({ length: 8 }, (_, index) => ({
      ...{ prompt: `row ${index}`, label: 'x' },
      metadata: { null: { reward: index / 10, ...(index === 7 && { nonsense: true }) } },
    }));
    const lines = rows.map((row) => `${JSON.stringify(row)}\n`).join('');
    writeFileSync(path.join(dir, 'rows.jsonl'), lines);
    writeFileSync(
      path.join(dir, 'collect.toml'),
      [
        ...['batches = 2', 'position = "position.json"'],
        ...['[dataset]', 'file = "rows.jsonl"', '[server]', `url = "${server.url}"`],
        ...['[rollouts]', 'train = false', '[collector]', 'group_size = 2', 'batch_groups = 3'],
      ].join('\n'),
    );
  });
  after(async () => {
    await server.kill();
    rmSync(dir, { recursive: true, force: true });
  });

  it('appends groups and batches to a file, and goes on where it was', async () => {
    const file = path.join(dir, 'groups.ndjson');
    const argv = ['collect', path.join(dir, 'collect.toml'), '-o', file];
    const first = await slipway([...argv, '--batches', '1']);
    assert.match(first.stderr, /^batch 1: 3 of 3 groups .* mean reward 0\.100$/m);
    await slipway([...argv, '--batches', '1', '--quiet']);
    const lines = readFileSync(file, 'utf8')
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line) as CollectedGroupLine | CollectedBatchLine);
    const groups = lines.filter((line) => line.type === 'group');
    assert.deepEqual(
      groups.map(({ row }) => row),
      [0, 1, 2, 3, 4, 5],
    );
    assert.deepEqual(
      groups[5]?.members.map(({ reward, status }) => [reward, status]),
      [
        [0.5, 'completed'],
        [0.5, 'completed'],
      ],
    );
    assert.equal(lines.filter(({ type }) => type === 'batch').length, 2);
  });

  it('says which row was given up and why, and fails where the rows end too early', async () => {
    const argv = ['collect', path.join(dir, 'collect.toml'), '--batches', '9'];
    await assert.rejects(
      slipway(argv),
      (error: { code: number; stdout: string; stderr: string }) => {
        assert.equal(error.code, 1);
        assert.match(error.stderr, /row 7: its group is given-up, .*nonsense/);
        assert.match(error.stderr, /the dataset ended before the other 8/);
        assert.match(error.stdout, /"type":"batch"/);
        return true;
      },
    );
  });

  it('refuses a configuration that is wrong with exit code 2 and its place', async () => {
    const file = path.join(dir, 'wrong.toml');
    writeFileSync(file, '[server]\nurl = "nowhere"\n');
    await assert.rejects(slipway(['collect', file]), (error: { code: number; stderr: string }) => {
      assert.equal(error.code, 2);
      assert.match(error.stderr, /server\.url/);
      return true;
    });
  });
});
