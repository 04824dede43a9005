/** `slipway serve` driven by a controller that is not ours: osmosis-ai's HTTP driver, callback store and listener, unchanged. */
import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { createServer, request as forward, type Server } from 'node:http';
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import os from 'node:os';
import path from 'node:path';
import { after, before, describe, test } from 'node:test';
import { osmosisPeerRecord, osmosisVersion } from '../../scripts/setup/osmosis-peer.js';
import { OsmosisPeer, type PeerAnswer, type PeerRollout } from '../support/osmosis-peer.ts';
import { lastingPorts } from '../support/lasting-ports.ts';
import { until } from '../support/until.ts';
import { startServeProcess, type ServeProcess } from '../support/serve-process.ts';

const rollout = (id: string, does: Readonly<Record<string, unknown>>): PeerRollout => ({
  rollout_id: id,
  messages: [{ role: 'user', content: `task of ${id}` }],
  label: '42',
  metadata: { null: does },
});

const maxConcurrent = 4;
const maxQueueDepth = 8;

describe('driven by osmosis-ai', { timeout: 300_000 }, () => {
  let stateDir = '';
  let server: ServeProcess;
  let peer: OsmosisPeer;

  before(async () => {
    stateDir = await mkdtemp(path.join(os.tmpdir(), 'slipway-osmosis-peer-'));
    const limits = [
      '--max-concurrent',
      `${maxConcurrent}`,
      '--max-queue-depth',
      `${maxQueueDepth}`,
    ];
    [server, peer] = await Promise.all([
      startServeProcess(['--backend', 'null', ...limits], { stateDir }),
      OsmosisPeer.start(),
    ]);
  });

  after(async () => {
    await peer[Symbol.asyncDispose]();
    await server.stop();
    await rm(stateDir, { recursive: true, force: true });
  });

  const statusOf = async (id: string): Promise<unknown> =>
    (await fetch(`${server.url}/rollout/${encodeURIComponent(id)}/status`)).json();

  test('its version is the one that was asked for', async (context) => {
    assert.equal(peer.version, osmosisVersion);
    context.diagnostic(`driven by ${await osmosisPeerRecord()}`);
  });

  const failures: readonly [string, Partial<PeerRollout>, string, RegExp][] = [
    ['an agent that fails', { metadata: { null: { fail: 'AGENT_FAILED' } } }, 'failure', /./],
    ['a verifier that fails', { metadata: { null: { fail: 'VERIFIER_FAILED' } } }, 'success', /./],
    ['a grade without a reward', { metadata: { null: { reward: null } } }, 'success', /reward/],
    [
      'an agent that takes too long',
      { metadata: { null: { duration_ms: 60_000 } }, agent_timeout_sec: 0.05 },
      'failure',
      /longer|deadline|exceeded/,
    ],
    [
      'grading that takes too long',
      { metadata: { null: { grade_ms: 60_000 } }, grader_timeout_sec: 0.05 },
      'success',
      /longer|deadline|exceeded/,
    ],
    ['time that is over before it begins', { agent_timeout_sec: 0 }, 'failure', /./],
  ];
  test('failures arrive as failures, with what is known and never with a reward', async () => {
    const { outcomes, commits, warnings } = await peer.run({
      server: server.url,
      rollouts: failures.map(([what, more]) => ({ ...rollout(what, {}), ...more })),
    });
    for (const [index, [what, , completed, message]] of failures.entries()) {
      const { status, error, sample } = outcomes[index] ?? {};
      assert.equal(status, 'failure', what);
      assert.match(error ?? '', message, what);
      assert.equal(sample?.['reward'] ?? null, null, what);
      const commit = commits.find(({ rollout_id }) => rollout_id === what);
      assert.equal(commit?.completion?.['status'], completed, what);
      assert.equal(commit.grader?.['status'], 'failure', what);
    }
    assert.equal(commits.length, failures.length);
    assert.deepEqual(warnings, []);
  });

  test('24 rollouts end with the reward that each asked for; a full server is waited for', async () => {
    const rewards = Array.from({ length: 24 }, (_, index) => index / 23);
    const ids = rewards.map((_, index) => `tenant-a::r ${index}`);
    const { outcomes, commits, answers, warnings } = await peer.run({
      server: server.url,
      rollouts: rewards.map((reward, index) =>
        rollout(ids[index] ?? '', { reward, duration_ms: 40, grade_ms: 20 }),
      ),
    });
    assert.deepEqual(
      outcomes.map(({ rollout_id, status, error, sample }) => [
        ...[rollout_id, status, error, sample?.['reward'], sample?.['remove_sample']],
      ]),
      rewards.map((reward, index) => [ids[index], 'success', null, reward, false]),
    );
    assert.deepEqual(commits.map(({ rollout_id }) => rollout_id).sort(), [...ids].sort());
    for (const { source, completion, grader } of commits)
      assert.deepEqual(
        [source, completion?.['status'], grader?.['status']],
        ['grader', 'success', 'success'],
      );
    const accepted = answers.filter(({ status }) => status === 202);
    const refused = answers.filter(({ status }) => status === 429);
    assert.equal(accepted.length, ids.length);
    for (const { body } of accepted) assert.deepEqual(body, {});
    assert.ok(refused.length >= ids.length - maxConcurrent - maxQueueDepth, `${refused.length}`);
    for (const { retry_after, body } of refused) {
      assert.ok(Number(retry_after) >= 1, String(retry_after));
      assert.deepEqual(body, { detail: 'rollout queue is full; retry later' });
    }
    assert.equal(answers.length, accepted.length + refused.length);
    assert.deepEqual(warnings, []);
    assert.deepEqual(await statusOf(ids[3] ?? ''), {
      ...{ rollout_id: ids[3], status: 'success', reward: rewards[3], err_message: null },
    });
  });

  test('what takes longer than the controller waits is cancelled, and says nothing more', async () => {
    const { outcomes, commits, answers, warnings } = await peer.run({
      server: server.url,
      rollouts: [rollout('too-long', { duration_ms: 600_000 })],
      callback_timeout_sec: 0.5,
      linger_sec: 0.5,
    });
    assert.deepEqual(
      outcomes.map(({ status, error }) => [status, error]),
      [['failure', 'callback_timeout']],
    );
    assert.deepEqual(answers.at(-1), {
      ...{ path: '/rollout/cancel', status: 200, retry_after: null },
      body: { dispositions: { 'too-long': 'cancelled_running' } },
    });
    assert.deepEqual(
      commits.map(({ source }) => source),
      ['timeout'],
    );
    assert.equal(((await statusOf('too-long')) as { status: string }).status, 'cancelled');
    assert.deepEqual(warnings, []);
  });

  test('a callback whose acknowledgement was lost comes again, byte for byte, and is no second result', async () => {
    await using proxy = await LossyProxy.start();
    const { outcomes, commits, warnings } = await runBehind(proxy, {
      rollouts: [rollout('lost-ack', { reward: 0.5 })],
      linger_sec: 1.5,
    });
    assert.deepEqual(
      outcomes.map(({ status, sample }) => [status, sample?.['reward']]),
      [['success', 0.5]],
    );
    const lost = proxy.posts.filter(({ path: to }) => to.endsWith('/grader'));
    assert.equal(lost.length, 2);
    assert.equal(new Set(lost.map(({ body, key }) => `${key} ${body}`)).size, 1);
    assert.equal(proxy.posts.length, 4, 'that of the completion was lost as well');
    assert.equal(commits.length, 1);
    assert.deepEqual(warnings, []);
  });

  test('a result that the controller could not write is offered again', async () => {
    const { outcomes, commits } = await peer.run({
      server: server.url,
      rollouts: [rollout('disk-full', { reward: 1 })],
      fail_commits: 1,
    });
    assert.deepEqual(
      outcomes.map(({ status }) => status),
      ['success'],
    );
    assert.equal(commits.length, 1);
  });

  test('what it reports about its model calls is kept with the trajectory', async () => {
    const call = { prompt_tokens: 7, completion_token_ids: [5, 6], logprobs: [-0.5, -0.25] };
    const samples = { any: { llm_call_metrics: [call] } };
    await peer.run({
      server: server.url,
      rollouts: [rollout('reported', {})],
      acknowledgment: { ok: true, trajectory: { model_name: 'the-model', samples } },
    });
    const file = `${server.url}/api/v1/rollouts/reported/files/trajectory.json`;
    await until('the report is in the archive', async () => {
      const answer = await fetch(file);
      const text = answer.status === 200 ? await answer.text() : '';
      return text.includes('the-model') && text.includes('-0.25');
    });
  });

  test('an id that was used for something else is refused, which it takes for a protocol error', async () => {
    const { outcomes } = await peer.run({
      server: server.url,
      rollouts: [rollout('disk-full', { reward: 0 })],
    });
    assert.match(outcomes[0]?.raised ?? '', /POST \/rollout returned 409/);
  });

  test('it gets one result for each rollout when the server dies under them', async () => {
    const own = await mkdtemp(path.join(os.tmpdir(), 'slipway-osmosis-death-'));
    const flags = ['--backend', 'null', '--max-concurrent', '6', '--max-queue-depth', '6'];
    const port = String(await lastingPorts(1));
    const first = await startServeProcess([...flags, '--port', port], { stateDir: own });
    const ids = Array.from({ length: 12 }, (_, index) => `mortal-${index}`);
    // Half of them have begun and would never end by themselves.
    const running = peer.run({
      server: first.url,
      rollouts: ids.map((id, index) => rollout(id, { duration_ms: index < 6 ? 86_400_000 : 0 })),
      linger_sec: 0.5,
    });
    await until('all are accepted, and those have begun', async () => {
      const answer = await fetch(`${first.url}/api/v1/rollouts`);
      const { rollouts } = (await answer.json()) as {
        readonly rollouts: readonly { readonly id: string; readonly has_agent_begun: boolean }[];
      };
      const begun = rollouts.filter(({ has_agent_begun }) => has_agent_begun).map(({ id }) => id);
      return rollouts.length === ids.length && ids.slice(0, 6).every((id) => begun.includes(id));
    });
    await first.kill();
    const second = await startServeProcess([...flags, '--port', port], { stateDir: own });
    assert.ok(second.recovered >= 6, `${second.recovered} were taken up`);
    const { outcomes, commits, warnings } = await running;
    await second.stop();
    await rm(own, { recursive: true, force: true });
    assert.deepEqual(
      outcomes.map(({ status }) => status),
      ids.map((_, index) => (index < 6 ? 'failure' : 'success')),
    );
    assert.deepEqual(commits.map(({ rollout_id }) => rollout_id).sort(), [...ids].sort());
    assert.deepEqual(warnings, []);
  });

  async function runBehind(
    proxy: LossyProxy,
    more: { readonly rollouts: readonly PeerRollout[]; readonly linger_sec: number },
  ): Promise<PeerAnswer> {
    const command = { server: server.url, callback_base: proxy.url, ...more };
    return await peer.run(command, (address) => (proxy.target = address));
  }
});

/** Passes callbacks on; the answer to the first one of every path is lost. */
class LossyProxy implements AsyncDisposable {
  target = '';
  readonly posts: { readonly path: string; readonly key: string; readonly body: string }[] = [];
  readonly #server: Server;

  private constructor() {
    this.#server = createServer((incoming, outgoing) => {
      const pieces: Buffer[] = [];
      incoming.on('data', (piece: Buffer) => pieces.push(piece));
      incoming.on('end', () => {
        const { url = '', headers } = incoming;
        const isFirst = !this.posts.some(({ path: known }) => known === url);
        const body = Buffer.concat(pieces);
        this.posts.push({
          path: url,
          key: String(headers['idempotency-key']),
          body: body.toString(),
        });
        const onward = forward(`${this.target}${url}`, { method: 'POST', headers }, (answer) => {
          if (isFirst) incoming.socket.destroy();
          else answer.pipe(outgoing.writeHead(answer.statusCode ?? 500, answer.headers));
        });
        onward.end(body);
      });
    });
  }

  static async start(): Promise<LossyProxy> {
    const proxy = new LossyProxy();
    proxy.#server.listen(0, '127.0.0.1');
    await once(proxy.#server, 'listening');
    return proxy;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#server.closeAllConnections();
    this.#server.close();
    await once(this.#server, 'close');
  }
}
