import assert from 'node:assert/strict';
import { mkdir } from 'node:fs/promises';
import path from 'node:path';
import { describe, it } from 'node:test';
import { never } from '../../src/core/linked-abort.ts';
import { MilesPlugin } from '../support/miles-plugin.ts';
import { until } from '../support/until.ts';
import { ServeFixture } from './serve-fixture.ts';

const base = 'http://127.0.0.1:9';
const hour = { duration_ms: 3_600_000 };

/** A row of a data set: what the plugin adds wins over it. */
const row = (instance: string, does: Readonly<Record<string, unknown>> = {}) => ({
  baseUrl: `${base}/sessions/0123456789abcdef`,
  metadata: {
    ...{ instance_id: 'task', null: does, unknown_key: [1, { a: null }], max_seq_len: '4096' },
    ...{ session_server_id: '127.0.0.1:9', session_server_instance_id: instance },
  },
  requestKwargs: { temperature: 0.5, max_tokens: 16, spaces_between_special_tokens: false },
});

async function served(
  use: (parts: {
    readonly fixture: ServeFixture;
    readonly url: string;
    readonly plugin: MilesPlugin;
    readonly stop: () => Promise<void>;
    readonly active: () => Promise<Readonly<Record<string, number>>>;
    readonly states: () => Promise<Readonly<Record<string, number>>>;
  }) => Promise<void>,
): Promise<void> {
  const HARBOR_ADMIN_SECRET = 'the-admin-secret';
  await using fixture = await ServeFixture.create({ HARBOR_ADMIN_SECRET });
  const tasksDir = path.join(fixture.root, 'tasks');
  await mkdir(path.join(tasksDir, 'task'), { recursive: true });
  const server = await fixture.start({
    ...{ '--agent-server-tasks-dir': tasksDir, '--max-concurrent': '2', '--max-queue-depth': '2' },
  });
  const url = server.controlUrl;
  await using plugin = new MilesPlugin({ AGENT_SERVER_URL: `${url}/`, HARBOR_ADMIN_SECRET });
  const json = async <T>(at: string): Promise<T> => {
    const headers = { authorization: `Bearer ${HARBOR_ADMIN_SECRET}` };
    return (await (await fetch(`${url}${at}`, { headers })).json()) as T;
  };
  await use({
    ...{ fixture, url, plugin, stop: () => server.stop(never) },
    async active() {
      const clients = await json<Record<string, { active_tasks: number }>>('/clients');
      return Object.fromEntries(
        Object.entries(clients).map(([key, one]) => [key, one.active_tasks]),
      );
    },
    async states() {
      const { rollouts } = await json<{ rollouts: { state: string }[] }>('/api/v1/rollouts');
      const counts: Record<string, number> = {};
      for (const { state } of rollouts) counts[state] = (counts[state] ?? 0) + 1;
      return counts;
    },
  });
}

describe('trials for an unmodified Miles plugin', { timeout: 300_000 }, () => {
  it('end with rewards, more of them than the queue holds, and a flush ends those of one instance only', () =>
    served(async ({ plugin, active, states }) => {
      const names = Array.from({ length: 8 }, (_, number) => `short ${number}`);
      for (const name of names) plugin.run(name, row('one', { reward: 0.25 }));
      for (const { status, keys, result } of await plugin.all(names)) {
        assert.equal(status, 200);
        assert.deepEqual(keys, ['agent_metrics', 'eval_report', 'exit_status', 'reward']);
        assert.equal(result?.exit_status, 'Submitted');
        assert.equal(result.reward, 0.25);
      }
      assert.deepEqual(await active(), {});

      for (const name of ['a', 'b', 'c', 'd', 'e']) plugin.run(name, row('one', hour));
      await until('four in the scheduler', async () => (await active())['one'] === 5);
      plugin.run('other', row('two', hour));
      await until('two clients', async () => (await active())['two'] === 1);
      await until('a full server', async () => {
        const { queued = 0, running = 0 } = await states();
        return queued + running === 4;
      });
      const [answer] = await plugin.abort({
        session_server_instance_ids: { 30000: 'one' },
      });
      assert.deepEqual(answer, [
        200,
        { session_server_instance_id: 'one', session_server_id: null, cancelled: 5 },
      ]);
      for (const { result } of await plugin.all(['a', 'b', 'c', 'd', 'e']))
        assert.deepEqual(result, {
          ...{ reward: 0, exit_status: 'Flushed', agent_metrics: {}, eval_report: {} },
        });
      assert.deepEqual(await active(), { two: 1 });
      await until('the other one runs', async () => (await states())['running'] === 1);
      assert.deepEqual(await plugin.abort({}), []);
      assert.equal((await plugin.abort({ session_server_instance_id: 'two' })).length, 1);
      assert.equal((await plugin.all(['other']))[0]?.result?.exit_status, 'Flushed');
    }));

  it('are cancelled when their client hangs up, and flushed when the server stops', () =>
    served(async ({ plugin, active, states, stop }) => {
      plugin.run('left', row('one', hour));
      plugin.run('kept', row('two', hour));
      await until('both run', async () => (await states())['running'] === 2);
      plugin.hangUp('left');
      await until('one is gone', async () => (await states())['cancelled'] === 1);
      assert.deepEqual(await active(), { two: 1 });
      plugin.run('failed', row('two', { fail: 'ENGINE_UNAVAILABLE' }));
      const [failed] = await plugin.all(['failed']);
      assert.equal(failed?.result?.exit_status, 'Error: APIConnectionError');
      await stop();
      assert.equal((await plugin.all(['kept']))[0]?.result?.exit_status, 'Flushed');
    }));

  it('of an earlier life are not run again, those of controllers are', async () => {
    await using fixture = await ServeFixture.create();
    const tasksDir = path.join(fixture.root, 'tasks');
    await mkdir(path.join(tasksDir, 'task'), { recursive: true });
    const flags = {
      ...{ '--agent-server-tasks-dir': tasksDir, '--max-concurrent': '1' },
      '--max-queue-depth': '4',
    };
    const first = await fixture.start(flags);
    const post = async (at: string, body: object): Promise<Response> =>
      await fetch(`${first.controlUrl}${at}`, {
        ...{ method: 'POST', body: JSON.stringify(body) },
        headers: { 'content-type': 'application/json' },
      });
    const controllers = (id: string) => ({
      ...{ rollout_id: id, initial_messages: [], metadata: { null: hour } },
      ...{ chat_completions_url: '', completion_callback_url: 'http://127.0.0.1:9/c' },
    });
    await post('/rollout', controllers('first'));
    await post('/rollout', controllers('run-second'));
    const { metadata } = row('one', hour);
    const gone = post('/run', { ...metadata, base_url: base, model: 'm' });
    const states = async (url: string): Promise<readonly string[]> => {
      const body = (await (await fetch(`${url}/api/v1/rollouts`)).json()) as {
        rollouts: { id: string; state: string }[];
      };
      return body.rollouts.map(({ id, state }) => `${id.slice(0, 5)} ${state}`).toSorted();
    };
    await until('three', async () => (await states(first.controlUrl)).length === 3);
    await first.stop(never);
    const { exit_status: status } = (await (await gone).json()) as { exit_status: string };
    assert.equal(status, 'Flushed');
    const second = await fixture.start(flags);
    const is = (state: RegExp) => async (): Promise<boolean> =>
      (await states(second.controlUrl)).some((one) => state.test(one));
    await until('the one of /run is cancelled', is(/^run-[0-9a-f] cancelled$/));
    assert.ok(await is(/^run-s (queued|running)$/)());
  });
});
