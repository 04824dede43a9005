/**
 * PyPI's `miles-rl` as a trainer: its generate function, its client of session servers and its HTTP helper, unchanged, before our session routes and our agent
 * server. What it collects is compared with what the engine was asked and what it answered.
 */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { mkdir } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import path from 'node:path';
import { after, before, describe, it } from 'node:test';
import { sessionIdentity } from '../../src/gateway/sessions/session-server.ts';
import { ServeFixture } from '../app/serve-fixture.ts';
import { SessionFixture, user } from '../sessions/miles/session-fixture.ts';
import { bytesOf, toyIds } from '../sessions/miles/toy-codec.ts';
import { MilesPeer } from '../support/miles-peer.ts';
import { until } from '../support/until.ts';

type Fields = Readonly<Record<string, unknown>>;

interface Made {
  readonly tokens: readonly number[];
  readonly response_length: number;
  readonly loss_mask: readonly number[];
  readonly rollout_log_probs: readonly number[];
  readonly weight_versions: readonly string[];
  readonly prefix_cache_info: Fields;
  readonly metadata: Fields;
  readonly status: string;
}

interface Collected {
  readonly records: readonly { readonly request: Fields; readonly response: Fields }[];
  readonly metadata: Fields;
  readonly instances: readonly string[];
  readonly session: string;
}

const stack = new AsyncDisposableStack();
const secret = 'the-admin-secret';
let sessions: SessionFixture;
let peer: MilesPeer;
let agentServer = '';
let port = 0;

before(async () => {
  sessions = stack.use(await SessionFixture.start());
  const front = createServer((request, response) => {
    if (request.url === '/health')
      response.end(JSON.stringify({ status: 'ok', ...sessionIdentity(sessions.server) }));
    else if (!sessions.server.handle(request, response)) response.writeHead(404).end();
  });
  front.listen(0, '127.0.0.1');
  await once(front, 'listening');
  stack.defer(() => {
    front.closeAllConnections();
    front.close();
  });
  port = (front.address() as AddressInfo).port;
  const fixture = stack.use(await ServeFixture.create({ HARBOR_ADMIN_SECRET: secret }));
  const tasksDir = path.join(fixture.root, 'tasks');
  await mkdir(path.join(tasksDir, 'task'), { recursive: true });
  const server = await fixture.start({ '--agent-server-tasks-dir': tasksDir });
  agentServer = server.controlUrl;
  peer = stack.use(
    new MilesPeer({ AGENT_SERVER_URL: `${agentServer}/\n`, HARBOR_ADMIN_SECRET: `${secret}\r\n` }),
  );
});
after(() => stack.disposeAsync());

/** As the trainer's command line makes them. */
const args = (more: Fields = {}): Fields => ({
  ...{ session_server_ip: '127.0.0.1', session_server_port: port },
  ...{ custom_agent_function_path: 'peer_agents.talkative', generate_multi_samples: false },
  ...more,
});
const sample = (metadata: Fields): Fields => ({
  ...{ index: 7, group_index: 1, prompt: [user('first')] },
  metadata: { instance_id: 'task', null: { reward: 0.25 }, turns: [], ...metadata },
});
const sampling = {
  ...{ temperature: 0.5, max_new_tokens: 16, sampling_seed: 3, top_k: null },
  spaces_between_special_tokens: false,
};
const generate = (given: Fields, more: Fields = {}): Promise<Made> =>
  peer.call<Made>('generate', { args: args(more), sample: sample(given), sampling });

/** What stands in the engine's log of these requests, put together as one sample. */
function logged(from: number, outputs: readonly (readonly number[])[]) {
  const requests = sessions.engine.requests.slice(from);
  assert.equal(requests.length, outputs.length);
  const prompts = requests.map(
    ({ text }) => (JSON.parse(text) as { input_ids: readonly number[] }).input_ids,
  );
  const first = prompts[0] ?? [];
  const tokens = [...first];
  const mask: number[] = [];
  const logprobs: number[] = [];
  for (const [at, prompt] of prompts.entries()) {
    assert.deepEqual(prompt.slice(0, tokens.length), tokens);
    const between = prompt.slice(tokens.length);
    const output = outputs[at] ?? [];
    tokens.push(...between, ...output);
    mask.push(...between.map(() => 0), ...output.map(() => 1));
    logprobs.push(...between.map(() => 0), ...output.map((_, step) => -(step + 1) / 8));
  }
  return { tokens, mask, logprobs };
}

const answerIds = (text: string): readonly number[] => [...bytesOf(text), toyIds.end];

describe('miles-rl as the trainer', { timeout: 120_000 }, () => {
  it('makes of a rollout the sample that the engine’s log has, judged by the agent server', async () => {
    const texts = ['one', 'zwei ü', '三'];
    const from = sessions.engine.requests.length;
    sessions.engine.says(...texts.map((text) => ({ text })));
    const made = await generate(
      { turns: [[user('second')], [user('third')]], own: { key: 1 } },
      { max_seq_len: 4_096 },
    );
    const { tokens, mask, logprobs } = logged(from, texts.map(answerIds));
    assert.deepEqual(made.tokens, tokens);
    assert.deepEqual(made.loss_mask, mask);
    assert.deepEqual(made.rollout_log_probs, logprobs);
    assert.equal(made.response_length, mask.length);
    assert.deepEqual([made.status, made.weight_versions], ['completed', ['v3', 'v3', 'v3']]);
    assert.deepEqual(made.prefix_cache_info, { cached_tokens: 6, total_prompt_tokens: 21 });
    const { reward, exit_status: ended, own } = made.metadata;
    assert.deepEqual([reward, ended, own], [0.25, 'Submitted', { key: 1 }]);
    assert.deepEqual(made.metadata['tito_session_mismatch'], []);
    const { temperature, max_tokens: most, seed, top_k: none } = sessions.engine.body(from);
    assert.deepEqual([temperature, most, seed, none], [0.5, 16, 3, undefined]);
  });

  it('collects records and leaves no session', async () => {
    sessions.engine.says({ text: 'a' }, { text: 'b', finish: 'length' });
    const from = sessions.engine.requests.length;
    const turns = [[user('x')], [user('y')]];
    const found = await peer.call<Collected>('records', { args: args(), turns });
    assert.deepEqual(
      found.records.map(({ request }) => request),
      sessions.engine.requests.slice(from).map(({ text }) => JSON.parse(text) as unknown),
    );
    const { tokens } = logged(from, [answerIds('a'), bytesOf('b')]);
    assert.deepEqual(found.metadata['accumulated_token_ids'], tokens);
    const { instanceId } = sessions.server;
    assert.deepEqual(found.instances, [instanceId, instanceId]);
    const gone = await fetch(`http://127.0.0.1:${port}/sessions/${found.session}`);
    assert.equal(gone.status, 404);
  });

  it('cuts what is too long, and aborts what called no model', async () => {
    sessions.engine.says({ text: 'long enough' });
    const from = sessions.engine.requests.length;
    const cut = await generate({}, { max_seq_len: 18 });
    const { tokens } = logged(from, [answerIds('long enough')]);
    assert.deepEqual([cut.tokens, cut.status], [tokens.slice(0, 18), 'truncated']);
    const silent = await generate({}, { custom_agent_function_path: 'slipway_miles.run' });
    assert.deepEqual([silent.tokens, silent.status], [[], 'aborted']);
  });

  it('ends its trials with the hook, by the id that its client found', async () => {
    const hour = { duration_ms: 3_600_000 };
    const rollouts = [1, 2, 3].map(() => generate({ null: hour }));
    const headers = { authorization: `Bearer ${secret}` };
    const { instanceId } = sessions.server;
    await until('all three run', async () => {
      const answer = await fetch(`${agentServer}/clients`, { headers });
      const clients = (await answer.json()) as Record<string, { active_tasks: number }>;
      return clients[instanceId]?.active_tasks === 3;
    });
    await peer.call('abort', { args: args({ session_server_instance_id: instanceId }) });
    for (const { metadata } of await Promise.all(rollouts))
      assert.deepEqual([metadata['exit_status'], metadata['reward']], ['Flushed', 0]);
  });

  it('posts trials with its HTTP helper', async () => {
    const row = { instance_id: 'task', null: { reward: 0.5 }, model: 'openai/model', unknown: {} };
    const body = { ...row, base_url: `http://127.0.0.1:${port}/sessions/s/v1` };
    const verdict = await peer.call('post', { url: `${agentServer}//run`, body });
    assert.deepEqual(Object.keys(verdict).toSorted(), [
      ...['agent_metrics', 'eval_report', 'exit_status', 'reward'],
    ]);
    assert.deepEqual([verdict['reward'], verdict['exit_status']], [0.5, 'Submitted']);
    const refused = peer.call('post', { url: `${agentServer}/run`, body: {} });
    await assert.rejects(refused, /HTTPStatusError.*422/s);
  });
});
