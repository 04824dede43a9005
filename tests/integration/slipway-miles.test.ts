/** The agent function in Python that trainers on Miles name, before a server that writes down what it is asked. */
import assert from 'node:assert/strict';
import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { createServer, type IncomingMessage, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import path from 'node:path';
import { createInterface } from 'node:readline';
import { after, before, describe, it } from 'node:test';
import { repositoryDir } from '../support/slipway-cli.ts';
import { until } from '../support/until.ts';

type Fields = Readonly<Record<string, unknown>>;

interface Asked {
  readonly url: string;
  readonly secret: string | null;
  readonly body: Fields;
}

interface Said {
  readonly result?: unknown;
  readonly raised?: string;
  readonly logged: readonly (readonly [level: string, text: string])[];
}

const script = path.join(repositoryDir, 'tests/support/slipway-miles.py');
const asked: Asked[] = [];
let statuses: number[] = [];
let reply = '{}';
let isSilent = false;
let hungUp = 0;
let server: Server;
let url = '';
let child: ChildProcess;
let lines: AsyncIterator<string>;

async function note(request: IncomingMessage): Promise<void> {
  const pieces: Buffer[] = [];
  for await (const piece of request) pieces.push(piece as Buffer);
  asked.push({
    url: request.url ?? '',
    secret: request.headers.authorization ?? null,
    body: JSON.parse(Buffer.concat(pieces).toString()) as Fields,
  });
}

before(async () => {
  server = createServer((request, response) => {
    response.on('close', () => (hungUp += response.writableEnded ? 0 : 1));
    void note(request).then(() => {
      if (!isSilent) response.writeHead(statuses.shift() ?? 200).end(reply);
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  child = spawn('python3', ['-B', script, path.join(repositoryDir, 'python')], {
    env: { PATH: process.env['PATH'] },
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  lines = createInterface({ input: child.stdout! })[Symbol.asyncIterator]();
});
after(async () => {
  child.kill('SIGKILL');
  await once(child, 'exit');
  server.closeAllConnections();
  server.close();
});

interface Call {
  readonly variables?: Readonly<Record<string, string>>;
  readonly options?: Fields;
  readonly run?: Fields;
  readonly abort?: Fields;
  readonly answers?: readonly number[];
  readonly reply?: string;
}

const say = (order: object): void => void child.stdin?.write(`${JSON.stringify(order)}\n`);

/** HERE in texts is the server. */
async function call(given: Call): Promise<Said & { readonly asked: readonly Asked[] }> {
  const { answers = [], reply: text = '{"cancelled": 1}', ...order } = given;
  asked.length = 0;
  statuses = [...answers];
  reply = text;
  say(JSON.parse(JSON.stringify({ variables: {}, ...order }).replaceAll('HERE', url)) as object);
  const line = await lines.next();
  assert.ok(line.done !== true, 'the Python process has ended');
  return { ...(JSON.parse(line.value) as Said), asked: [...asked] };
}

const session = 'http://10.0.0.1:30000/sessions/0123';
const verdict = { reward: 0.5, exit_status: 'Submitted', eval_report: { a: 1 }, agent_metrics: {} };
const ran = { base_url: session, prompt: [], request_kwargs: { temperature: 0.5 } };

describe('slipway_miles.run', { timeout: 60_000 }, () => {
  it('posts the row with what the trainer adds over it', async () => {
    const said = await call({
      variables: { AGENT_SERVER_URL: 'HERE', AGENT_MODEL_NAME: 'qwen', HARBOR_ADMIN_SECRET: 's' },
      run: {
        ...{ ...ran, later: 'keywords of later releases' },
        metadata: {
          ...{ instance_id: 'task', own: [1, { a: null }], model: 'row', base_url: 'row' },
          ...{ max_seq_len: '4096', session_server_id: '10.0.0.1:30000' },
          session_server_instance_id: 'abc\n',
        },
      },
      reply: JSON.stringify({ ...verdict, unknown: 1 }),
    });
    assert.deepEqual(said.result, verdict);
    assert.deepEqual(said.asked, [
      {
        ...{ url: '/run', secret: null },
        body: {
          ...{ instance_id: 'task', own: [1, { a: null }] },
          ...{ base_url: `${session}/v1`, model: 'openai/qwen' },
          sampling_params: { temperature: 0.5 },
          ...{ max_seq_len: 4096, session_server_id: '10.0.0.1:30000' },
          session_server_instance_id: 'abc',
        },
      },
    ]);
  });

  it('leaves out what is absent, and fills a sparse verdict', async () => {
    const metadata = { max_seq_len: ' ', session_server_id: null, session_server_instance_id: '' };
    const said = await call({
      variables: { AGENT_SERVER_URL: 'HERE' },
      run: { base_url: `${session}/`, prompt: 'x', request_kwargs: {}, metadata },
      reply: '{"exit_status": null}',
    });
    assert.deepEqual(said.result, {
      ...{ reward: 0, exit_status: '', eval_report: {}, agent_metrics: {} },
    });
    const { body } = said.asked[0] ?? {};
    assert.deepEqual(body, {
      ...{ base_url: `${session}/v1`, model: 'openai/model', sampling_params: {} },
    });
  });

  for (const [host, address, id] of [
    ['outside\r\n', 'http://outside:30000/sessions/0123/v1', 'outside:30000'],
    ['fd00::1', 'http://[fd00::1]:30000/sessions/0123/v1', '[fd00::1]:30000'],
    ['  ', `${session}/v1`, '10.0.0.1:30000'],
  ] as const)
    it(`names the session server as sandboxes reach it for ${JSON.stringify(host)}`, async () => {
      const said = await call({
        variables: { AGENT_SERVER_URL: 'HERE', MILES_ROUTER_EXTERNAL_HOST: host },
        run: { ...ran, metadata: { session_server_id: '10.0.0.1:30000' } },
      });
      const { base_url: base, session_server_id: server } = said.asked[0]?.body ?? {};
      assert.deepEqual([base, server], [address, id]);
    });

  for (const [title, given, level, text] of [
    ['a refusal', { answers: [422], reply: 'wrong' }, 'ERROR', 'answered 422: wrong'],
    ['a server that is full, asked once', { answers: [429] }, 'ERROR', 'answered 429'],
    ['an answer that is not JSON', { reply: '<html>' }, 'ERROR', 'not JSON'],
    ['an answer that is no object', { reply: '[]' }, 'ERROR', 'no object'],
    [
      'a length that is none',
      { run: { ...ran, metadata: { max_seq_len: 'long' } } },
      'ERROR',
      'invalid literal',
    ],
    ['a limit that is none', { variables: { AGENT_TRIAL_TIMEOUT: 'soon' } }, 'ERROR', 'AGENT_TRIAL_TIMEOUT'], // prettier-ignore
    ['a server that is not there', { variables: { AGENT_SERVER_URL: 'http://127.0.0.1:9' } }, 'ERROR', 'no result'], // prettier-ignore
  ] as const)
    it(`gives nothing and says why for ${title}`, async () => {
      const { variables = {}, ...rest } = given as Call;
      const said = await call({
        ...{ run: { ...ran, metadata: {} }, ...rest },
        variables: { AGENT_SERVER_URL: 'HERE', ...variables },
      });
      assert.equal(said.result, null);
      assert.equal(said.raised, undefined);
      assert.equal(said.logged.length, 1, JSON.stringify(said.logged));
      assert.equal(said.logged[0]?.[0], level);
      assert.ok(said.logged[0][1].includes(text), said.logged[0][1]);
      assert.ok(said.asked.length <= 1);
    });

  it('closes its connection when it runs out of time or is cancelled, and gives nothing', async () => {
    isSilent = true;
    const before = hungUp;
    const variables = { AGENT_SERVER_URL: 'HERE' };
    const late = await call({
      ...{ variables, options: { trial_timeout: 0.05 }, run: { ...ran, metadata: {} } },
    });
    assert.deepEqual([late.result, late.logged[0]?.[1]], [null, 'a trial: no result in time']);
    await until('the first is gone', () => hungUp === before + 1);
    const metadata = { instance_id: 'task' };
    const running = call({ variables, ...{ cancelled: true, run: { ...ran, metadata } } });
    await until('it is asked', () => asked.length === 1);
    say({});
    const { result, logged } = await running;
    assert.deepEqual([result, logged[0]?.[1]], [null, 'task: cancelled']);
    await until('the second is gone', () => hungUp === before + 2);
    isSilent = false;
  });
});

const nowhere = 'the address of the agent server (url, AGENT_SERVER_URL)';
const nobody = 'the id of the session server (session_server_instance_id)';
const one = { session_server_instance_id: 'one' };

describe('where slipway_miles sends to', { timeout: 60_000 }, () => {
  const addresses: readonly (readonly [string, Fields, Readonly<Record<string, string>>])[] = [
    ['with a line break', {}, { AGENT_SERVER_URL: 'HERE\n' }],
    ['with CRLF and slashes', {}, { AGENT_SERVER_URL: '\tHERE//\r\n' }],
    ['in the older variable', {}, { AGENT_SERVER_URL: ' \r\n', SWE_AGENT_URL: ' HERE' }],
    ['in both variables', {}, { AGENT_SERVER_URL: 'HERE', SWE_AGENT_URL: 'http://127.0.0.1:9' }],
    ['in an option', { url: ' HERE/\n' }, { AGENT_SERVER_URL: 'http://127.0.0.1:9' }],
    ['behind an option of blanks', { url: '\n' }, { AGENT_SERVER_URL: 'HERE/' }],
  ];
  for (const [title, options, variables] of addresses)
    it(`finds an address ${title}`, async () => {
      const flushed = await call({ options, variables, abort: one });
      const answered = await call({ options, variables, run: { ...ran, metadata: {} } });
      assert.deepEqual(
        [flushed, answered].map((said) => said.asked.map((each) => each.url)),
        [['/flush'], ['/run']],
      );
      assert.deepEqual([flushed.logged, answered.logged], [[], []]);
    });

  for (const address of ['http://a b', 'host:8000', 'http://', 'HERE\n/x', 'http://u:p@h', '/run'])
    it(`refuses ${JSON.stringify(address)} by name`, async () => {
      const variables = { AGENT_SERVER_URL: address };
      for (const order of [{ abort: one }, { run: { ...ran, metadata: {} } }]) {
        const { result, logged, asked: requests } = await call({ variables, ...order });
        assert.deepEqual([result, requests, logged.length], [null, [], 1]);
        assert.match(logged[0]?.[1] ?? '', /AGENT_SERVER_URL/);
      }
    });

  const secrets: readonly (readonly [string, Fields, string, string | null])[] = [
    ['a line break', {}, 's3cret\n', 'Bearer s3cret'],
    ['CRLF and spaces', {}, '  s3cret\r\n', 'Bearer s3cret'],
    ['nothing', {}, '', null],
    ['blanks alone', {}, ' \r\n', null],
    ['an option', { secret: 'opt\n' }, 's3cret', 'Bearer opt'],
  ];
  for (const [title, options, HARBOR_ADMIN_SECRET, sent] of secrets)
    it(`trims a secret with ${title}`, async () => {
      const variables = { AGENT_SERVER_URL: 'HERE', HARBOR_ADMIN_SECRET };
      const { asked: requests } = await call({ options, variables, abort: one });
      assert.deepEqual(
        requests.map(({ secret }) => secret),
        [sent],
      );
    });
});

describe('slipway_miles.abort', { timeout: 60_000 }, () => {
  const ids: readonly (readonly [string, Fields, readonly string[]])[] = [
    ['the id of one server', { session_server_instance_id: ' a\r\n' }, ['a']],
    ['a map of ports', { session_server_instance_ids: { 1: 'a', 2: 'b\n', 3: ' ' } }, ['a', 'b']],
    ['a list', { session_server_instance_ids: ['a', '', 'b', 'a'] }, ['a', 'b']],
    ['a list of objects', { session_server_instance_ids: [{ instance_id: 'a', port: 1 }] }, ['a']],
    [
      'a map before a single id',
      { session_server_instance_ids: { 1: 'a' }, session_server_instance_id: 'b' },
      ['a'],
    ],
    ['an empty map', { session_server_instance_ids: {}, session_server_instance_id: 'b' }, ['b']],
  ];
  for (const [title, abort, expected] of ids)
    it(`flushes every instance of ${title}`, async () => {
      const said = await call({ variables: { AGENT_SERVER_URL: 'HERE' }, abort });
      assert.deepEqual(
        said.asked.map(({ body }) => body['session_server_instance_id']).toSorted(),
        expected,
      );
      assert.deepEqual([said.result, said.logged], [null, []]);
    });

  const absent: readonly (readonly [string, Readonly<Record<string, string>>, Fields, string])[] = [
    ['no address', {}, one, nowhere],
    ['an address of blanks', { AGENT_SERVER_URL: ' \n', SWE_AGENT_URL: '' }, one, nowhere],
    ['no id', { AGENT_SERVER_URL: 'HERE' }, {}, nobody],
    [
      'ids of blanks',
      { AGENT_SERVER_URL: 'HERE' },
      { session_server_instance_ids: { 1: '\n' } },
      nobody,
    ],
    ['neither', {}, { session_server_instance_id: null }, `${nowhere} and ${nobody}`],
  ];
  for (const [title, variables, abort, missing] of absent)
    it(`asks nobody and warns once for ${title}`, async () => {
      const said = await call({ variables, abort });
      assert.deepEqual(said.asked, []);
      assert.deepEqual(said.logged, [['WARNING', `trials are not flushed: missing ${missing}`]]);
    });

  for (const [title, answers, requests, warnings] of [
    ['again until it is heard', [500, 503], 3, 0],
    ['three times and no more', [500, 500, 500, 500], 3, 1],
    ['once where the secret is wrong', [403], 1, 1],
  ] as const)
    it(`asks ${title}, and raises nothing`, async () => {
      const said = await call({ variables: { AGENT_SERVER_URL: 'HERE' }, abort: one, answers });
      assert.deepEqual(
        [said.asked.length, said.logged.length, said.raised],
        [requests, warnings, undefined],
      );
    });
});
