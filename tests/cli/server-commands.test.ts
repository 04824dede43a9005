/** The commands that talk to a running server: what they print, in words and as documents, and how they end. */
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { mkdir, readdir, readFile, stat, truncate, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import path from 'node:path';
import { after, before, describe, it } from 'node:test';
import type { RunningServer } from '../../src/app/serve.ts';
import type { RolloutController } from '../../src/callbacks/rollout-controller.ts';
import { exitCodes } from '../../src/cli/exit-codes.ts';
import { nullRollout, ServeFixture } from '../app/serve-fixture.ts';
import { slipwayInProcess, type Ended, type InProcessOptions } from '../support/in-process-cli.ts';

const controlKey = 'the-key-of-the-operator';
const tenantKey = 'the-key-of-the-tenant';

let fixture: ServeFixture;
let server: RunningServer;
let controller: RolloutController;

before(async () => {
  fixture = await ServeFixture.create({ CONTROL_KEY: controlKey, TENANT_KEY: tenantKey });
  await writeFile(
    path.join(fixture.root, 'slipway.toml'),
    '[keys]\ncontrol = "env:CONTROL_KEY"\n[tenants.small]\nkey = "env:TENANT_KEY"\nweight = 2\n[admission]\nmax_concurrent = 2\n',
  );
  server = await fixture.start();
  controller = await fixture.controller({ serverUrl: server.controlUrl, serverKey: tenantKey });
  await controller.run(nullRollout('done', { reward: 0.5 }));
  await controller.run(nullRollout('broken', { fail: 'ENVIRONMENT_LOST' }));
});
after(() => fixture[Symbol.asyncDispose]());

type Options = Partial<Pick<InProcessOptions, 'variables' | 'signal' | 'onOut'>>;

/** As the operator unless the variables say otherwise. */
async function slipway(argv: readonly string[], options: Options = {}): Promise<Ended> {
  return await slipwayInProcess(argv, {
    ...options,
    cwd: fixture.root,
    variables: {
      ...fixture.ports.machine.variables,
      ...{ SLIPWAY_URL: server.controlUrl, SLIPWAY_KEY: controlKey },
      ...options.variables,
    },
  });
}

async function document<T>(argv: readonly string[], options: Options = {}): Promise<T> {
  const { exitCode, stdout, stderr } = await slipway([...argv, '--json'], options);
  assert.deepEqual([exitCode, stderr], [0, ''], stdout);
  const parsed = JSON.parse(stdout) as T & { schema_version: number };
  assert.equal(parsed.schema_version, 1);
  return parsed;
}

async function until(what: () => Promise<boolean>): Promise<void> {
  const end = Date.now() + 20_000;
  while (!(await what())) {
    assert.ok(Date.now() < end, 'it did not come to that within 20 s');
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

describe('the commands of a running server', { timeout: 120_000 }, () => {
  it('status shows admission, tenants and live rollouts, once or again and again', async () => {
    const running = controller.run(nullRollout('live', { duration_ms: 80_000_000 }));
    let stdout = '';
    await until(async () => {
      ({ stdout } = await slipway(['status']));
      return /^1 of 2 running, 0 queued, 0 delivering; 3 .*\nlive /s.test(stdout);
    });
    assert.match(stdout, /^1 of 2 running, 0 queued, 0 delivering; 3 places free of 4\.\n/);
    assert.match(stdout, /\nsmall +2 +1 +0\n/);
    assert.match(stdout, /\nlive +small +running +\S+/);
    const { rollouts, admission } = await document<{
      rollouts: { id: string }[];
      admission: { running: number };
    }>(['status']);
    assert.deepEqual([rollouts.map(({ id }) => id), admission.running], [['live'], 1]);
    const interrupted = new AbortController();
    let shown = 0;
    const watched = await slipway(['status', '--watch'], {
      signal: interrupted.signal,
      onOut: () => {
        shown += 1;
        if (shown === 2) interrupted.abort(new Error('enough'));
      },
    });
    assert.equal(watched.stdout.match(/places free/g)?.length, 2);
    const { receipts } = await document<{
      receipts: { rollout_id: string; disposition: string; is_complete: boolean }[];
    }>(['cancel', 'live', 'not-yet']);
    assert.deepEqual(
      receipts.map(({ rollout_id, disposition }) => [rollout_id, disposition]),
      [
        ['live', 'cancelled_running'],
        ['not-yet', 'not_found'],
      ],
    );
    const [, ended] = await Promise.allSettled([
      controller.run(nullRollout('not-yet')),
      Promise.race([running, Promise.resolve('no callback')]),
    ]);
    assert.equal(ended.status === 'fulfilled' && ended.value, 'no callback');
  });

  it('cancel prints receipts, by ids, prefix or all, and wants exactly one of these', async () => {
    // A full server would be asked again only after seconds.
    await until(async () => (await slipway(['status'])).stdout.includes('4 places free'));
    for (const id of ['a-1', 'a-2', 'b-1'])
      void controller
        .run(nullRollout(id, { duration_ms: 80_000_000 }))
        .catch(() => 'the fixture ends it');
    await until(async () => {
      const { stdout } = await slipway(['rollouts', 'ls', '--state', 'queued,running']);
      return ['a-1', 'a-2', 'b-1'].every((id) => stdout.includes(id));
    });
    const byPrefix = await slipway(['cancel', '--prefix', 'a-']);
    assert.match(byPrefix.stdout, /\na-1 +cancelled_/);
    assert.match(byPrefix.stdout, /\na-2 +cancelled_/);
    assert.doesNotMatch(byPrefix.stdout, /b-1/);
    assert.match((await slipway(['cancel', '--all'])).stdout, /\nb-1 +cancelled_/);
    assert.equal((await slipway(['cancel', '--all'])).stdout, 'nothing to cancel\n');
    for (const argv of [['cancel'], ['cancel', 'x', '--all'], ['cancel', '--all', '--prefix', 'a']])
      assert.equal((await slipway(argv)).exitCode, exitCodes.usage, argv.join(' '));
  });

  it('rollouts ls and show say how rollouts ended and what is kept', async () => {
    const listed = await slipway(['rollouts', 'ls', '--prefix', 'done']);
    assert.match(listed.stdout, /\ndone +small +success +0\.5 +– /);
    const all = await document<{ rollouts: { id: string }[] }>(['rollouts', 'ls', '--limit', '1']);
    assert.equal(all.rollouts.length, 1);
    await until(async () => (await slipway(['rollouts', 'show', 'done'])).stdout.includes('.json'));
    const shown = (await slipway(['rollouts', 'show', 'done'])).stdout;
    for (const part of [/^reward +0\.5$/m, /^grader +delivered +1 +http/m, /^outcome\.json +\d+$/m])
      assert.match(shown, part);
    const broken = (await slipway(['rollouts', 'show', 'broken'])).stdout;
    assert.match(broken, /^ended in +\S+: ENVIRONMENT_LOST$/m);
    const unknown = await slipway(['rollouts', 'show', 'never-was']);
    assert.notEqual(unknown.exitCode, 0);
    assert.match(unknown.stderr, /never-was/);
  });

  it('download takes up a partial file where it ended, checks it, and leaves what is there', async () => {
    await until(async () => (await slipway(['rollouts', 'show', 'done'])).stdout.includes('.json'));
    const dir = path.join(fixture.root, 'kept');
    const first = await slipway(['rollouts', 'download', 'done', dir]);
    assert.equal(first.exitCode, 0, first.stderr);
    assert.match(first.stdout, /^downloaded outcome\.json$/m);
    const file = path.join(dir, 'outcome.json');
    const whole = await readFile(file);
    assert.match(
      (await slipway(['rollouts', 'download', 'done', dir])).stdout,
      /^kept outcome\.json$/m,
    );
    for (const [before, state] of [
      [whole.subarray(0, 10), 'resumed'],
      [Buffer.from('something else'), 'refused'],
      [Buffer.alloc(0), 'downloaded'],
      [Buffer.concat([whole, whole]), 'downloaded'],
    ] as const) {
      await truncate(file, 0);
      await writeFile(`${file}.partial`, before);
      const argv = ['rollouts', 'download', 'done', dir, '--path', 'outcome.json'];
      const { stdout, stderr, exitCode } = await slipway(argv);
      if (state === 'refused') {
        assert.equal(exitCode, exitCodes.failed);
        assert.match(stderr, /another digest/);
        assert.equal((await stat(file)).size, 0, 'the name is not given to half a file');
        continue;
      }
      assert.match(stdout, new RegExp(`^${state} outcome\\.json$`, 'm'));
      assert.deepEqual(await readFile(file), whole);
      assert.deepEqual(
        (await readdir(dir)).filter((name) => name.endsWith('.partial')),
        [],
      );
    }
  });

  it('download follows no path that a server makes up', async () => {
    const body = Buffer.from('x');
    const sha256 = createHash('sha256').update(body).digest('hex');
    const dir = path.join(fixture.root, 'inner');
    await mkdir(dir);
    for (const name of [
      '../outside',
      '/etc/outside',
      'a/../../outside',
      'a\\..\\outside',
      'a//b',
      '.',
    ]) {
      const evil = createServer((request, response) => {
        if (!request.url?.endsWith('/files')) return void response.end(body);
        const file = { path: name, size_bytes: 1, sha256, modified_at: new Date().toISOString() };
        response.end(JSON.stringify({ rollout_id: 'r', files: [file] }));
      });
      await new Promise<void>((resolve) => evil.listen(0, '127.0.0.1', resolve));
      const url = `http://127.0.0.1:${(evil.address() as AddressInfo).port}`;
      const { exitCode, stderr } = await slipway(['rollouts', 'download', 'r', dir, '--url', url]);
      evil.close();
      assert.notEqual(exitCode, 0);
      assert.match(stderr, /^ARCHIVE_UNSAFE/, name);
    }
    assert.deepEqual(await readdir(dir), []);
    assert.ok(!(await readdir(fixture.root)).includes('outside'));
  });

  it('callbacks ls names dead letters, and replay delivers one again with the same bytes', async () => {
    const refusing: string[] = [];
    let isRefusing = true;
    const listener = await fixture.controller({
      serverUrl: server.controlUrl,
      serverKey: controlKey,
      onReceived: ({ channel, text }) => {
        if (channel !== 'grader') return undefined;
        refusing.push(text);
        return isRefusing ? { status: 400 } : undefined;
      },
    });
    const run = listener.run(nullRollout('dead', { reward: 1 }));
    await until(async () => (await slipway(['callbacks', 'ls'])).stdout.includes('grader'));
    const { callbacks } = await document<{ callbacks: { key: string; rollout_id: string }[] }>([
      'callbacks',
      'ls',
    ]);
    const [letter] = callbacks.filter(({ rollout_id }) => rollout_id === 'dead');
    assert.ok(letter);
    isRefusing = false;
    const replayed = await slipway(['callbacks', 'replay', letter.key]);
    assert.match(replayed.stdout, /grader callback of dead is pending/);
    assert.equal((await run).reward, 1);
    assert.equal(new Set(refusing).size, 1);
    assert.equal(refusing.length, 2);
    assert.equal((await slipway(['callbacks', 'ls'])).stdout, 'no dead letters\n');
    assert.notEqual((await slipway(['callbacks', 'replay', letter.key])).exitCode, 0);
  });

  it('doctor says that nothing is stuck, or what a rollout waits for', async () => {
    assert.equal((await slipway(['doctor'])).stdout, 'nothing is stuck\n');
    const { findings } = await document<{ findings: { rollout_id: string; kind: string }[] }>([
      ...['doctor', 'done'],
    ]);
    assert.deepEqual(
      findings.map(({ rollout_id, kind }) => [rollout_id, kind]),
      [['done', 'ended']],
    );
  });

  it('store backup copies the store while the server runs', async () => {
    const file = path.join(fixture.root, 'copy.sqlite');
    const { stdout, exitCode, stderr } = await slipway(['store', 'backup', file]);
    assert.equal(exitCode, 0, stderr);
    assert.ok(stdout.includes(file));
    assert.ok((await stat(file)).size > 0);
    const busy = await slipway(['store', 'downgrade', '1']);
    assert.equal(busy.exitCode, exitCodes.failed);
    assert.match(busy.stderr, /^STORE_LOCKED/);
  });

  it('a tenant sees its own rollouts, and a caller without a key nothing', async () => {
    const asTenant = { variables: { SLIPWAY_KEY: tenantKey } };
    const { rollouts } = await document<{ rollouts: { tenant: string }[] }>(
      ['rollouts', 'ls'],
      asTenant,
    );
    assert.ok(rollouts.length > 0 && rollouts.every(({ tenant }) => tenant === 'small'));
    const refused = await slipway(['status'], { variables: { SLIPWAY_KEY: '' } });
    assert.equal(refused.exitCode, exitCodes.usage);
    assert.match(
      refused.stderr,
      /^UNAUTHORIZED: .* — Give the key: SLIPWAY_KEY, or --key-file FILE\./,
    );
    const mistyped = await slipway(['rollouts', 'ls', '--state', 'bad']);
    assert.match(mistyped.stderr, /^REQUEST_INVALID: state\b.*: /);
    const agents = { variables: { SLIPWAY_URL: server.dataUrls[0]! } };
    assert.match((await slipway(['status'], agents)).stderr, /does not answer as a rollout server/);
    const file = path.join(fixture.root, 'key');
    await writeFile(file, `# mine\n${controlKey}\n`);
    const keyed = await slipway(['status', '--key-file', file], { variables: { SLIPWAY_KEY: '' } });
    assert.equal(keyed.exitCode, 0);
    const inUrl = { SLIPWAY_KEY: '', SLIPWAY_URL: `${server.controlUrl}/k/${controlKey}` };
    assert.equal((await slipway(['status'], { variables: inUrl })).exitCode, 0);
  });

  it('says plainly that there is no server, or that it is none, without the key of the address', async () => {
    const gone = createServer((_request, response) => response.end('hello'));
    await new Promise<void>((resolve) => gone.listen(0, '127.0.0.1', resolve));
    const url = `http://127.0.0.1:${(gone.address() as AddressInfo).port}`;
    const asked = { variables: { SLIPWAY_URL: `${url}/k/${controlKey}` } };
    const wrong = await slipway(['status'], asked);
    assert.match(wrong.stderr, /^SERVER_UNREACHABLE: .* does not answer as a rollout server/);
    gone.closeAllConnections();
    await new Promise((resolve) => gone.close(resolve));
    for (const argv of [
      ['status'],
      ['cancel', 'x'],
      ['doctor'],
      ['rollouts', 'ls'],
      ['callbacks', 'ls'],
    ]) {
      const { exitCode, stderr } = await slipway(argv, asked);
      assert.equal(exitCode, exitCodes.failed);
      assert.match(
        stderr,
        /^SERVER_UNREACHABLE: no server answers at http:\/\/127\.0\.0\.1:\d+: ECONNREFUSED — Start it/,
      );
      assert.doesNotMatch(stderr, new RegExp(controlKey));
    }
    const nonsense = await slipway(['status', '--url', 'localhost']);
    assert.match(nonsense.stderr, /^CONFIG_INVALID \[--url\]/);
  });
});
