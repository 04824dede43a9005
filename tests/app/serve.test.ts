/** The rollout server as it is composed: ready, refused, stopped in stages, started again on the same folder. */
import assert from 'node:assert/strict';
import { readFile, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { describe, it } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { never } from '../../src/core/linked-abort.ts';
import { nullRollout, ServeFixture } from './serve-fixture.ts';

const key = (name: string): string => `${name}-key-of-the-operator`;

async function until(what: () => Promise<boolean>): Promise<void> {
  const end = Date.now() + 20_000;
  while (!(await what())) {
    assert.ok(Date.now() < end, 'it did not come to that within 20 s');
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

async function post(url: string, body: object, bearer?: string): Promise<Response> {
  return await fetch(`${url}/rollout`, {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      ...(bearer !== undefined && { authorization: `Bearer ${bearer}` }),
    },
    body: JSON.stringify({
      chat_completions_url: '',
      completion_callback_url: 'http://127.0.0.1:9/never',
      ...body,
    }),
  });
}

async function statusOf(url: string, id: string): Promise<string> {
  const answer = await fetch(`${url}/rollout/${id}/status`);
  return ((await answer.json()) as { status: string }).status;
}

describe('the composed server', { timeout: 120_000 }, () => {
  it('takes rollouts to their callbacks, and leaves their files in the archive', async () => {
    await using fixture = await ServeFixture.create();
    const server = await fixture.start();
    const controller = await fixture.controller({ serverUrl: server.controlUrl });
    const results = await Promise.all(
      [0, 0.25, 1].map((reward) => controller.run(nullRollout(`r-${reward}`, { reward }))),
    );
    assert.deepEqual(
      results.map(({ id, status, reward }) => [id, status, reward]),
      [
        ['r-0', 'success', 0],
        ['r-0.25', 'success', 0.25],
        ['r-1', 'success', 1],
      ],
    );
    const outcome = path.join(server.dataDir, 'archive', 'r-1', 'outcome.json');
    await until(() =>
      readFile(outcome).then(
        () => true,
        () => false,
      ),
    );
    const metrics = await (await fetch(`${server.controlUrl}/metrics`)).text();
    assert.match(metrics, /slipway_/);
  });

  it('is alone in its folder, and leaves it free when it stops or cannot start', async () => {
    await using fixture = await ServeFixture.create();
    const first = await fixture.start();
    await assert.rejects(fixture.start(), { code: 'STORE_LOCKED' });
    await first.stop(never);
    const port = new URL(first.controlUrl).port;
    await writeFile(path.join(fixture.root, 'package.json'), '{}');
    const other = await fixture.start({ '--data-dir': 'other', '--port': port });
    const rows: readonly [Record<string, string>, string][] = [
      [{ '--port': port, '--data-port': '0' }, 'LISTEN_REFUSED'],
      [{ '--host': '0.0.0.0' }, 'LISTEN_REFUSED'],
      [{ '--backend': 'nil' }, 'BACKEND_UNKNOWN'],
      [{ '--backend': 'local' }, 'CONFIG_INVALID'],
      [{ '--data-dir': '/proc/nothing' }, 'CONFIG_INVALID'],
      [{ '--data-dir': 'package.json/data' }, 'CONFIG_INVALID'],
      [{ '--engine-url': 'nowhere' }, 'CONFIG_INVALID'],
      [{ '--callbacks-allow': 'ftp://x' }, 'CONFIG_INVALID'],
      [{ '--control-key': 'env:NOT_SET' }, 'CONFIG_INVALID'],
      [{ '--allow-from': 'nowhere' }, 'CONFIG_INVALID'],
    ];
    for (const [flags, code] of rows) {
      await assert.rejects(fixture.start(flags), { code }, JSON.stringify(flags));
    }
    await other.stop(never);
    const memory = await fixture.start({ '--store': 'memory' });
    for (const kind of ['memory', 'sqlite'])
      await assert.rejects(fixture.start({ '--store': kind }), { code: 'STORE_LOCKED' });
    await memory.stop(never);
    const again = await fixture.start();
    assert.equal(again.recovered, 0);
  });

  it('keeps what had not begun over a shutdown, and ends what had as a failure', async () => {
    await using fixture = await ServeFixture.create();
    const flags = { '--max-concurrent': '1', '--max-queue-depth': '2' };
    const first = await fixture.start(flags);
    const controller = await fixture.controller({ serverUrl: () => url });
    let url = first.controlUrl;
    const begun = controller.run(nullRollout('begun', { duration_ms: 80_000_000 }));
    await until(async () => (await statusOf(url, 'begun')) === 'running');
    const waiting = ['w-1', 'w-2'].map((id) => controller.run(nullRollout(id)));
    for (const id of ['w-1', 'w-2'])
      await until(async () => (await statusOf(url, id)) === 'queued');
    await first.stop(never);
    const second = await fixture.start(flags);
    url = second.controlUrl;
    assert.ok(second.recovered >= 2);
    const { status, completion, grader } = await begun;
    assert.deepEqual([status, completion?.['status'], grader?.['status']], ['failure', 'failure', 'failure']); // prettier-ignore
    for (const result of await Promise.all(waiting)) assert.equal(result.status, 'success');
  });

  it('reads keys again when their file changes or it is told to: the old one stays good as long as it is in there', async () => {
    await using fixture = await ServeFixture.create({ FIXED_KEY: key('fixed') });
    const file = path.join(fixture.root, 'keys');
    await writeFile(file, `${key('old')}\n`);
    const server = await fixture.start({ '--control-key': ['file:keys', 'env:FIXED_KEY'] });
    const isAllowed = async (bearer: string): Promise<boolean> => {
      const { status } = await post(server.controlUrl, {}, bearer);
      assert.ok([401, 422].includes(status), String(status));
      return status === 422;
    };
    const allowed = async (): Promise<boolean[]> =>
      await Promise.all(['old', 'new', 'fixed'].map((name) => isAllowed(key(name))));
    assert.deepEqual(await allowed(), [true, false, true]);
    await writeFile(file, `${key('old')}\n${key('new')}\n`);
    await server.reload();
    assert.deepEqual(await allowed(), [true, true, true]);
    await writeFile(file, '');
    await assert.rejects(server.reload(), { code: 'CONFIG_INVALID' });
    assert.deepEqual(await allowed(), [true, true, true]);
    await writeFile(file, `${key('new')}\n`);
    await until(async () => !(await isAllowed(key('old'))));
    assert.deepEqual(await allowed(), [false, true, true]);
    await server.stop(never);
    const log = await readFile(path.join(server.dataDir, 'logs', 'server.ndjson'), 'utf8');
    for (const name of ['old', 'new', 'fixed']) assert.ok(!log.includes(key(name)), name);
  });

  it('accepts nothing new while the disk has less room than it is to keep free, and says so', async () => {
    await using fixture = await ServeFixture.create();
    const { controlUrl } = await fixture.start({ '--limits-disk-floor-bytes': `${10 ** 15}` });
    await until(async () => {
      const answer = await post(controlUrl, nullRollout('much'));
      if (answer.status === 202) return false;
      assert.equal(answer.status, 429);
      assert.match(await answer.text(), /disk/);
      return true;
    });
    const doctor = await (await fetch(`${controlUrl}/api/v1/doctor`)).json();
    assert.match(JSON.stringify(doctor), /"kind":"disk-full","owner":"operator"/);
  });

  it('archives what a controller reports while the server stops', async () => {
    await using fixture = await ServeFixture.create();
    const stopping = Promise.withResolvers<undefined>();
    let isStopping = false;
    const server = await fixture.start(
      {},
      {
        // Reading the report takes longer than closing everything else.
        store: (store) =>
          new Proxy(store, {
            get: (target, name) => {
              const value: unknown = Reflect.get(target, name);
              if (name === 'rollout')
                return async (id: string) => {
                  if (isStopping) await delay(50);
                  return await target.rollout(id);
                };
              return typeof value === 'function' ? (value.bind(target) as unknown) : value;
            },
          }),
      },
    );
    const received = Promise.withResolvers<undefined>();
    const controller = await fixture.controller({
      serverUrl: server.controlUrl,
      commit: async () => {
        received.resolve(undefined);
        await stopping.promise;
        return { trajectory: { model_name: 'reported-late' } };
      },
    });
    const running = controller.run(nullRollout('r-1'));
    await received.promise;
    isStopping = true;
    const stopped = server.stop(never);
    stopping.resolve(undefined);
    await Promise.all([stopped, running]);
    const file = path.join(server.dataDir, 'archive', 'r-1', 'trajectory.json');
    assert.match(await readFile(file, 'utf8'), /reported-late/);
  });

  it('refuses with 503 while it stops, and hurries when it is told to', async () => {
    await using fixture = await ServeFixture.create();
    const server = await fixture.start({ '--drain-sec': '3600' });
    const controller = await fixture.controller({ serverUrl: server.controlUrl });
    const running = controller.run(nullRollout('long', { duration_ms: 80_000_000 }));
    await until(async () => (await statusOf(server.controlUrl, 'long')) === 'running');
    const hurry = new AbortController();
    const stopped = server.stop(hurry.signal);
    await until(async () => {
      const answer = await post(server.controlUrl, nullRollout('late'));
      if (answer.status !== 503) return false;
      assert.match(answer.headers.get('retry-after') ?? '', /^\d+$/);
      return true;
    });
    hurry.abort(new Error('enough'));
    await stopped;
    assert.equal((await running).status, 'failure');
    await assert.rejects(fetch(`${server.controlUrl}/health`));
  });
});
