import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type AddressInfo } from 'node:net';
import os from 'node:os';
import path from 'node:path';
import { after, before, describe, it } from 'node:test';
import { promisify } from 'node:util';
import type { CollectedBatchLine, CollectedGroupLine } from '../../src/wire/api/collected-lines.ts';
import { slipwayInProcess } from '../support/in-process-cli.ts';
import { startServeProcess } from '../support/serve-process.ts';
import { repositoryDir } from '../support/slipway-cli.ts';

const slipway = async (argv: readonly string[]): Promise<{ stdout: string; stderr: string }> =>
  await promisify(execFile)(process.execPath, [
    path.join(repositoryDir, 'bin/slipway.js'),
    ...argv,
  ]);

/** It was free a moment ago. */
async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  server.close();
  await once(server, 'close');
  return port;
}

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

  const drivers: readonly (readonly [string, string])[] = [
    ['synchronous', ''],
    ['one-step-ahead', ''],
    ['asynchronous', '[asynchronous]\nbuffer_groups = 4'],
  ];
  for (const [driver, options] of drivers)
    it(`collects every row once, ${driver}, with callbacks to a listener by setting`, async () => {
      const port = await freePort();
      const file = path.join(dir, `${driver}.toml`);
      const listen = `host = "0.0.0.0"\nport = ${port}\npublic_url = "http://127.0.0.1:${port}"`;
      const text = readFileSync(path.join(dir, 'collect.toml'), 'utf8')
        .replace('position = "position.json"', `driver = "${driver}"`)
        .replace('rows.jsonl', 'rows.jsonl@[:6]');
      writeFileSync(file, `${text}\n[listen]\n${listen}\n${options}\n`);
      const ended = await slipwayInProcess(['collect', file, '--quiet'], {
        ...{ cwd: dir, variables: { SLIPWAY_STATE_DIR: dir } },
      });
      assert.equal(ended.exitCode, 0, ended.stderr);
      const rows = ended.stdout
        .trim()
        .split('\n')
        .map((line) => JSON.parse(line) as CollectedGroupLine | CollectedBatchLine)
        .flatMap((line) => (line.type === 'group' ? [line.row] : []));
      assert.deepEqual(rows.toSorted(), [0, 1, 2, 3, 4, 5]);
    });

  it('does not go on in another file', async () => {
    const file = path.join(dir, 'other.toml');
    const text = readFileSync(path.join(dir, 'collect.toml'), 'utf8');
    writeFileSync(file, text.replace('rows.jsonl', 'rows.jsonl@[1:]'));
    const ended = await slipwayInProcess(['collect', file], {
      ...{ cwd: dir, variables: { SLIPWAY_STATE_DIR: dir } },
    });
    assert.equal(ended.exitCode, 2);
    assert.match(ended.stderr, /CONFIG_INVALID.*position.*other rows/s);
  });

  it('says which row was given up and why, and fails where the rows end too early', async () => {
    const argv = ['collect', path.join(dir, 'collect.toml'), '--batches', '9'];
    await assert.rejects(
      slipway(argv),
      (error: { code: number; stdout: string; stderr: string }) => {
        assert.equal(error.code, 1);
        assert.match(error.stderr, /row 7: its group is given-up, .*nonsense/);
        assert.match(error.stderr, /the dataset ended before the other \d/);
        assert.match(error.stdout, /"type":"batch"/);
        return true;
      },
    );
  });

  it('ends when nobody reads its lines any more', async () => {
    const endless = path.join(dir, 'endless.toml');
    const text = readFileSync(path.join(dir, 'collect.toml'), 'utf8')
      .replace('batches = 2', '')
      .replace('position = ', '# ')
      .replace('"rows.jsonl"', '"rows.jsonl@[:6]"\nepochs = 1000000');
    writeFileSync(endless, text);
    const program = `'${process.execPath}' bin/slipway.js collect '${endless}'`;
    const shell = promisify(execFile)(
      'bash',
      ['-c', `${program} | head -1; exit \${PIPESTATUS[0]}`],
      {
        ...{ cwd: repositoryDir, timeout: 60_000 },
      },
    );
    await assert.rejects(shell, (error: { code: number; stdout: string; stderr: string }) => {
      assert.equal(error.code, 130, error.stderr);
      assert.match(error.stdout, /^\{"type":"group","batch":0,"group":0,.*\n$/);
      assert.match(error.stderr, /nobody takes what is printed/);
      return true;
    });
  });

  const mistakes: readonly (readonly [
    string,
    (text: string) => string,
    readonly string[],
    RegExp,
  ])[] = [
    [
      'a position that cannot be kept',
      (text) => text.replace('position.json', 'nowhere/position.json'),
      [],
      /writing the position .*nowhere/,
    ],
    [
      'an output that cannot be written',
      (text) => text,
      ['-o', '/nowhere/lines'],
      /\/nowhere\/lines/,
    ],
    [
      'a server that does not answer',
      (text) => text.replace(/url = ".*"/, 'url = "http://127.0.0.1:1"'),
      [],
      /SERVER_UNREACHABLE/,
    ],
  ];
  for (const [title, change, flags, told] of mistakes)
    it(`names ${title} before anything has run`, async () => {
      const file = path.join(dir, 'mistaken.toml');
      writeFileSync(file, change(readFileSync(path.join(dir, 'collect.toml'), 'utf8')));
      const ended = await slipwayInProcess(['collect', file, ...flags], {
        ...{ cwd: dir, variables: { SLIPWAY_STATE_DIR: dir } },
      });
      assert.notEqual(ended.exitCode, 0);
      assert.match(ended.stderr, told);
      assert.doesNotMatch(ended.stderr, /INTERNAL/);
      assert.equal(ended.stdout, '');
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
