/** What `slipway preflight` says of a configuration, its folders, keys, addresses and backend: each check passing and failing. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { mkdir, readFile, stat, writeFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import type { AddressInfo } from 'node:net';
import path from 'node:path';
import { describe, it } from 'node:test';
import { systemClock } from '../../../src/core/clock.ts';
import { FileLocks } from '../../../src/store/file/file-lock.ts';
import { schemaSteps } from '../../../src/store/sqlite/schema.ts';
import { storeFile } from '../../../src/store/sqlite/store-folder.ts';
import { openStore } from '../../store/sqlite/opening.ts';
import { PreflightFolder } from '../../support/preflight-run.ts';
import { slipwayInProcess } from '../../support/in-process-cli.ts';
import type { PreflightResult } from '../../../src/wire/preflight-report.ts';

type Expected = Partial<
  Pick<PreflightResult, 'status' | 'code' | 'field'> & { readonly summary: RegExp }
>;

function assertResult(result: PreflightResult, { summary, ...expected }: Expected): void {
  const about = JSON.stringify(result);
  for (const [key, value] of Object.entries(expected))
    assert.equal(result[key as keyof PreflightResult], value, about);
  if (summary !== undefined) assert.match(result.summary, summary, about);
  if (result.status === 'failed') assert.ok(result.code !== null, about);
  // Whoever reads a failure is told what to do.
  if (result.status === 'failed' || result.status === 'warning')
    assert.ok(result.remedy !== null || result.detail !== null, about);
}

const nullBackend = ['--backend', 'null'];

describe('preflight of a server', { timeout: 120_000 }, () => {
  it('passes for a server of the null backend, says what it skipped and why, and leaves nothing', async () => {
    await using folder = await PreflightFolder.create();
    const { report, exitCode, stderr } = await folder.run(nullBackend);
    assert.equal(exitCode, 0);
    const byStatus = (status: string): string[] =>
      report.checks.filter((check) => check.status === status).map(({ name }) => name);
    assert.deepEqual(byStatus('ok'), [
      ...['configuration', 'data-folder', 'store', 'keys', 'listeners', 'backend', 'grader'],
    ]);
    assert.deepEqual(byStatus('skipped'), [
      ...['engine', 'telemetry', 'callbacks', 'model', 'tasks', 'sandbox', 'workflow', 'gateway'],
    ]);
    assert.equal(stderr.trim().split('\n').length, report.checks.length, 'a line for each');
    assert.deepEqual(await folder.files(), ['tmp']);
  });

  it('names everything that is wrong with a configuration at once, and skips the rest', async () => {
    await using folder = await PreflightFolder.create();
    await folder.write('slipway.toml', '[listen]\nprot = 1\n[backend]\nknd = "null"\n');
    const { report, one } = await folder.run(['--log-level', 'loud']);
    const { detail, ...result } = one('configuration');
    assertResult({ detail, ...result }, { status: 'failed', code: 'CONFIG_INVALID' });
    for (const hint of ['listen.port', 'backend.kind', '--log-level'])
      assert.ok(detail?.includes(hint), detail ?? '');
    for (const { name, status } of report.checks)
      if (name !== 'configuration') assert.equal(status, 'skipped');
  });

  it('tells for people in lines, and answers with 2 for checks that there are not', async () => {
    await using folder = await PreflightFolder.create();
    const run = (...flags: string[]) =>
      slipwayInProcess(['preflight', ...flags], { cwd: folder.root, variables: folder.variables });
    const told = await run('--port', '0', '--backend', 'local', '--only', 'keys,grader');
    assert.equal(told.exitCode, 1);
    assert.match(
      told.stdout,
      /^ok {6}keys: .*\nfailed {2}grader: .*backend\.local\.grader.*\n {8}→ Name/m,
    );
    assert.match(told.stdout, /\nnot ready: 2 ok, 0 warnings, 1 failed, 0 skipped in /);
    assert.equal(told.stdout.split('\n').length, 6);
    const several = await run('--port', 'x', '--log-level', 'loud', '--only', 'keys');
    assert.match(
      several.stdout,
      /\n {8}→ Correct every line below\.\n {8}\[.*\n {8}\[.*\nskipped /,
    );
    const unknown = await run('--only', 'keys,everything');
    assert.equal(unknown.exitCode, 2);
    assert.match(unknown.stderr, /CONFIG_INVALID \[--only\]: .*"everything".*data-folder, store/);
  });

  it('ends with its signal, and leaves nothing then either', async () => {
    await using folder = await PreflightFolder.create();
    const stop = new AbortController();
    stop.abort(new Error('enough'));
    const options = { cwd: folder.root, variables: folder.variables, signal: stop.signal };
    const { exitCode, stdout } = await slipwayInProcess(['preflight', '--json'], options);
    assert.deepEqual([exitCode === 0, stdout], [false, '']);
    assert.deepEqual(await folder.files(), ['tmp']);
  });
});

describe('preflight of a data folder', { timeout: 120_000 }, () => {
  const only = [...nullBackend, '--only', 'data-folder'];

  it('is made and removed where it is missing, and written where it is there', async () => {
    await using folder = await PreflightFolder.create();
    await mkdir(path.join(folder.root, 'there'));
    for (const dir of ['there', 'a/b/c'])
      assertResult((await folder.run([...only, '--data-dir', dir])).one('data-folder'), {
        status: 'ok',
        summary: /can be written, and nobody else uses it/,
      });
    assert.deepEqual(await folder.files(), ['there', 'tmp']);
  });

  it('fails where it cannot be made, is in use, or has no room', async () => {
    await using folder = await PreflightFolder.create();
    await folder.write('file', '');
    const held = path.join(folder.root, 'held');
    await writeFile(path.join(folder.root, 'note'), '');
    const lock = new FileLocks(systemClock).tryAcquire(path.join(held, 'store.lock'));
    const rows: readonly [readonly string[], Expected][] = [
      [['--data-dir', 'file/data'], { code: 'CONFIG_INVALID', field: 'data_dir' }],
      [['--data-dir', '/proc/nothing'], { code: 'CONFIG_INVALID', field: 'data_dir' }],
      [['--data-dir', 'held'], { code: 'STORE_LOCKED' }],
      [
        ['--limits-disk-floor-bytes', `${10 ** 15}`],
        { code: 'DISK_FULL', field: 'limits.disk_floor_bytes' },
      ],
    ];
    for (const [flags, expected] of rows) {
      const { one } = await folder.run([...only, ...flags]);
      assertResult(one('data-folder'), { status: 'failed', ...expected });
    }
    const { one } = await folder.run([...nullBackend, '--only', 'store', '--data-dir', 'held']);
    assert.match(one('store').summary, /first start makes it/);
    lock?.release();
  });
});

describe('preflight of a store', { timeout: 120_000 }, () => {
  const only = [...nullBackend, '--only', 'store'];

  it('opens a copy: what would be upgraded, is too new or is no store is told, and stays as it is', async () => {
    await using folder = await PreflightFolder.create();
    const latest = schemaSteps.length;
    const later = { version: latest + 1, up: 'CREATE TABLE later (x)', down: null };
    const rows: readonly [string, (dir: string) => Promise<void>, Expected][] = [
      ['fine', async (dir) => (await openStore(dir)).close(), { status: 'ok', summary: /opens/ }],
      [
        'old',
        async (dir) => (await openStore(dir, { steps: schemaSteps.slice(0, 1) })).close(),
        { status: 'warning', summary: new RegExp(`schema 1, .*upgrades it to schema ${latest}`) },
      ],
      [
        'new',
        async (dir) => (await openStore(dir, { steps: [...schemaSteps, later] })).close(),
        { status: 'failed', code: 'STORE_TOO_NEW' },
      ],
      [
        'broken',
        async (dir) => writeFile(storeFile(dir), 'x'.repeat(8_192)),
        { status: 'failed', code: 'STORE_DAMAGED' },
      ],
    ];
    for (const [name, make, expected] of rows) {
      const dir = path.join(folder.root, name);
      await mkdir(dir);
      await make(dir);
      const before = await readFile(storeFile(dir));
      const { mtimeMs } = await stat(storeFile(dir));
      const result = (await folder.run([...only, '--data-dir', name])).one('store');
      assertResult(result, expected);
      assert.ok(!result.summary.includes('slipway-preflight-'), result.summary);
      assert.deepEqual(await readFile(storeFile(dir)), before, name);
      assert.equal((await stat(storeFile(dir))).mtimeMs, mtimeMs);
    }
    const { one } = await folder.run([...only, '--store', 'memory']);
    assert.match(one('store').summary, /in memory/);
  });

  it('is skipped while another process has it open', async () => {
    await using folder = await PreflightFolder.create();
    const dir = path.join(folder.root, 'used');
    await using used = await openStore(dir);
    assert.ok(used);
    const { one } = await folder.run([...only, '--data-dir', 'used']);
    assertResult(one('store'), { status: 'skipped', summary: /another process/ });
  });
});

describe('preflight of keys and addresses', { timeout: 120_000 }, () => {
  it('says whether every key can be read, and never a key', async () => {
    await using folder = await PreflightFolder.create();
    await folder.write('keys', 'a-key-of-the-operator\n');
    await folder.write('short', 'hunter2\n');
    const rows: readonly [readonly string[], Expected][] = [
      [[], { status: 'ok', summary: /no caller needs a key/ }],
      [['--control-key', 'file:keys'], { status: 'ok', summary: /all keys can be read/ }],
      [
        ['--control-key', 'file:gone'],
        { status: 'failed', code: 'CONFIG_INVALID', summary: /gone: no such file/ },
      ],
      [['--control-key', 'file:short'], { status: 'failed', summary: /at least 16/ }],
      [['--control-key', 'env:NOT_SET'], { status: 'failed', summary: /NOT_SET is not set/ }],
      [
        ['--engine-url', 'http://x', '--engine-key', 'file:gone'],
        { status: 'failed', field: 'engine.key' },
      ],
      [['--host', '0.0.0.0'], { status: 'failed', code: 'LISTEN_REFUSED', field: 'listen.host' }],
      [['--allow-from', 'nowhere'], { status: 'failed', field: 'listen.allow_from' }],
    ];
    for (const [flags, expected] of rows) {
      const { one, stdout, stderr } = await folder.run([
        ...nullBackend,
        '--only',
        'keys',
        ...flags,
      ]);
      assertResult(one('keys'), expected);
      assert.doesNotMatch(stdout + stderr, /hunter2|a-key-of/);
    }
  });

  it('takes all addresses as the server would, and gives them back', async () => {
    await using folder = await PreflightFolder.create();
    const taken = createServer();
    taken.listen(0, '127.0.0.1');
    await once(taken, 'listening');
    const port = String((taken.address() as AddressInfo).port);
    const only = [...nullBackend, '--only', 'listeners'];
    const rows: readonly [readonly string[], string][] = [
      [['--port', port, '--data-port', '0'], 'listen.port'],
      [['--port', '0', '--data-port', port], 'listen.data_port'],
      [['--host', '203.0.113.7', '--port', '0'], 'listen.port'],
      [
        ['--port', '0', '--gateway-workers', '2', '--data-port', String(Number(port) - 1)],
        'listen.data_port',
      ],
    ];
    for (const [flags, field] of rows)
      assertResult((await folder.run([...only, ...flags])).one('listeners'), {
        ...{ status: 'failed', code: 'LISTEN_REFUSED', field },
      });
    await new Promise((resolve) => taken.close(resolve));
    const flags = [...only, '--port', port, '--data-port', '0'];
    for (let time = 0; time < 2; time += 1)
      assertResult((await folder.run(flags)).one('listeners'), { status: 'ok' });
    const twice = await folder.run([...only, '--port', port, '--data-port', port]);
    assertResult(twice.one('listeners'), { status: 'failed', field: 'listen.data_port' });
  });
});

describe('preflight of a backend', { timeout: 120_000 }, () => {
  it('loads a workflow as the server does, and wants a grader unless none is meant', async () => {
    await using folder = await PreflightFolder.create();
    await folder.write(
      'mine.ts',
      'export class Work { async run() { return []; } }\nexport class Grade { async grade() {} }\nexport class Neither {}\n',
    );
    await folder.write('broken.ts', 'throw new Error("will not load");\n');
    const rows: readonly [readonly string[], Expected, Expected][] = [
      [['mine.ts:Work'], { status: 'ok' }, { status: 'failed', field: 'backend.local.grader' }],
      [['mine.ts:Work', 'mine.ts:Grade'], { status: 'ok' }, { status: 'ok', summary: /Grade/ }],
      [
        ['mine.ts:Neither', 'mine.ts:Grade'],
        { status: 'failed', code: 'WORKFLOW_INVALID', summary: /no method run/ },
        { status: 'ok' },
      ],
      [['broken.ts:Work'], { status: 'failed', summary: /will not load/ }, { status: 'failed' }],
      [[], { status: 'failed', field: 'backend.local.workflow' }, { status: 'failed' }],
    ];
    for (const [[workflow, grader], ofBackend, ofGrader] of rows) {
      const { one } = await folder.run([
        ...['--backend', 'local', '--only', 'backend,grader'],
        ...(workflow === undefined ? [] : ['--backend-local-workflow', workflow]),
        ...(grader === undefined ? [] : ['--backend-local-grader', grader]),
      ]);
      assertResult(one('backend'), ofBackend);
      assertResult(one('grader'), ofGrader);
    }
    const meant = ['--backend', 'local', '--only', 'grader', '--no-grader'];
    assertResult((await folder.run(meant)).one('grader'), { status: 'ok', summary: /--no-grader/ });
    assert.deepEqual(
      (await folder.files()).filter((name) => !name.endsWith('.ts')),
      ['tmp'],
    );
  });

  it('loads a workflow in Python by the interpreter that is named', async () => {
    await using folder = await PreflightFolder.create();
    await folder.write(
      'mine.py',
      'class Work:\n    async def run(self, ctx):\n        return []\n',
    );
    await folder.write('needs.py', 'import no_such_package\n');
    const only = ['--backend', 'local', '--only', 'backend', '--backend-local-workflow'];
    const rows: readonly [readonly string[], Expected][] = [
      [['mine.py:Work'], { status: 'ok' }],
      [
        ['needs.py:Work'],
        {
          ...{ status: 'warning', code: null, field: 'python.interpreter' },
          summary: /not looked at: .*package no_such_package/,
        },
      ],
      [['mine.py:Gone'], { status: 'failed', code: 'WORKFLOW_INVALID', summary: /Gone/ }],
      [['mine.py:Work', '--python', '/nowhere/python3'], { status: 'failed', summary: /nowhere/ }],
    ];
    for (const [flags, expected] of rows)
      assertResult((await folder.run([...only, ...flags])).one('backend'), expected);
  });

  it('names a backend, an agent and an environment that there are not', async () => {
    await using folder = await PreflightFolder.create();
    const rows: readonly [readonly string[], Expected][] = [
      [['--backend', 'nil'], { code: 'BACKEND_UNKNOWN', field: 'backend.kind' }],
      [['--backend-native-agent', 'nobody'], { code: 'CONFIG_INVALID' }],
      [['--backend-native-environment', 'moon'], { code: 'ENVIRONMENT_UNKNOWN' }],
    ];
    for (const [flags, expected] of rows) {
      const { one } = await folder.run(['--only', 'backend', ...flags]);
      assertResult(one('backend'), { status: 'failed', ...expected });
    }
    const { one } = await folder.run(['--only', 'grader']);
    assertResult(one('grader'), { status: 'ok', summary: /verifier of each task grades/ });
  });
});
