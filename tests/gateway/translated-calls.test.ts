import assert from 'node:assert/strict';
import { once } from 'node:events';
import { request, type IncomingMessage, type ServerResponse } from 'node:http';
import { describe, it } from 'node:test';
import { createParser, type EventSourceMessage } from 'eventsource-parser';
import { silentLogger } from '../../src/core/logger.ts';
import { openEngine } from '../../src/engines/registry.ts';
import { UrlPolicy } from '../../src/wire/url-policy.ts';
import { ChatUpstream, type Answer } from '../fakes/chat-upstream.ts';
import { bearer, call, openCall, startRelay, type CallAnswer } from './relay-fixture.ts';

type Json = Record<string, unknown>;

const dialects = {
  messages: {
    path: '/messages?beta=true',
    body: { model: 'm', max_tokens: 100, messages: [{ role: 'user', content: 'Hi' }] },
    begun: 'message_start',
    text: 'content_block_delta',
    ended: 'message_stop',
    failed: 'error',
    alive: 'ping',
    deadKey: 403,
  },
  responses: {
    path: '/responses',
    body: { model: 'm', input: 'Hi' },
    begun: 'response.created',
    text: 'response.output_text.delta',
    ended: 'response.completed',
    failed: 'response.failed',
    alive: 'response.in_progress',
    deadKey: 400,
  },
} as const;

const chunk = (delta: Json, finish: string | null = null): string =>
  `data: ${JSON.stringify({ id: 'c', object: 'chat.completion.chunk', choices: [{ index: 0, delta, finish_reason: finish }] })}\n\n`;

const usage = `data: ${JSON.stringify({ choices: [], usage: { prompt_tokens: 7, completion_tokens: 2, total_tokens: 9 } })}\n\n`;

function begin(response: ServerResponse): void {
  response.writeHead(200, { 'content-type': 'text/event-stream' });
}

/** `Hello`, streamed or whole as asked. */
const hello: Answer = (response, { body }) => {
  if ((JSON.parse(body.toString()) as Json)['stream'] !== true) {
    const message = { role: 'assistant', content: 'Hello' };
    response.writeHead(200, { 'content-type': 'application/json' });
    response.end(
      JSON.stringify({
        choices: [{ index: 0, message, finish_reason: 'stop' }],
        usage: { prompt_tokens: 7, completion_tokens: 2, total_tokens: 9 },
      }),
    );
    return;
  }
  begin(response);
  response.end(
    `${chunk({ role: 'assistant', content: 'Hel' })}${chunk({ content: 'lo' }, 'stop')}${usage}data: [DONE]\n\n`,
  );
};

function eventsIn(text: string): readonly EventSourceMessage[] {
  const events: EventSourceMessage[] = [];
  createParser({ onEvent: (event) => events.push(event) }).feed(text);
  return events;
}

const namesIn = (answer: CallAnswer): readonly (string | undefined)[] =>
  eventsIn(answer.body.toString()).map(({ event }) => event);

const jsonIn = (answer: CallAnswer): Json => JSON.parse(answer.body.toString()) as Json;

/** Every error is in the shape of its dialect. */
function assertEnvelope(dialect: keyof typeof dialects, answer: CallAnswer): Json {
  const body = jsonIn(answer);
  const error = body['error'] as Json;
  assert.equal(typeof error['message'], 'string');
  assert.equal(typeof error['type'], 'string');
  if (dialect === 'messages') assert.equal(body['type'], 'error');
  else assert.ok('code' in error && 'param' in error);
  return error;
}

for (const name of ['messages', 'responses'] as const) {
  const dialect = dialects[name];
  describe(`calls in ${name}`, { timeout: 60_000 }, () => {
    async function open(answer: Answer, options: Parameters<typeof startRelay>[0] = {}) {
      const upstream = await ChatUpstream.start(answer);
      const running = await startRelay(options);
      const route = await running.route('r', `${upstream.url}/v1`);
      const url = `${route.baseUrl}${dialect.path}`;
      const body = (more: Json = {}) => JSON.stringify({ ...dialect.body, ...more });
      return {
        ...{ upstream, running, route, url, body },
        post: (more: Json = {}) => call(url, { headers: bearer(route), body: body(more) }),
        async [Symbol.asyncDispose]() {
          await running[Symbol.asyncDispose]();
          await upstream[Symbol.asyncDispose]();
        },
      };
    }

    it('come back whole, and upstream is asked with its own key', async () => {
      await using bench = await open(hello);
      const answer = await bench.post();
      assert.equal(answer.status, 200);
      assert.match(JSON.stringify(jsonIn(answer)), /"Hello"/);
      assert.match(String(answer.headers['request-id']), /^[0-9a-f]{24}$/);
      const [received] = bench.upstream.received;
      assert.equal(received?.url, '/v1/chat/completions');
      assert.equal(received.headers.authorization, 'Bearer upstream-key-0123456789');
      assert.deepEqual((JSON.parse(received.body.toString()) as Json)['messages'], [
        { role: 'user', content: 'Hi' },
      ]);
      assert.equal((await bench.running.relay.activity('r'))?.callsDone, 1);
    });

    it('stream with the names of their events, one beginning and one end', async () => {
      await using bench = await open(hello);
      const answer = await bench.post({ stream: true });
      assert.match(String(answer.headers['content-type']), /^text\/event-stream/);
      const names = namesIn(answer);
      assert.equal(names[0], dialect.begun);
      assert.equal(names.at(-1), dialect.ended);
      assert.equal(names.filter((each) => each === dialect.ended).length, 1);
      assert.equal(names.filter((each) => each === dialect.text).length, 2);
    });

    it('are taken with the key in the path or as x-api-key too', async () => {
      await using bench = await open(hello);
      const { apiKey, baseUrl } = bench.route;
      const root = baseUrl.replace(/\/v1$/, '');
      const body = bench.body();
      const inPath = await call(`${root}/k/${apiKey}/v1${dialect.path}`, { body });
      const inHeader = await call(bench.url, { headers: { 'x-api-key': apiKey }, body });
      assert.deepEqual([inPath.status, inHeader.status], [200, 200]);
    });

    it('with a dead or no key are refused so that the client stops, without a word upstream', async () => {
      await using bench = await open(hello);
      await bench.running.relay.revoke('r');
      const dead = await bench.post();
      const none = await call(bench.url, { body: bench.body() });
      for (const answer of [dead, none]) {
        assert.equal(answer.status, dialect.deadKey);
        assertEnvelope(name, answer);
      }
      assert.equal(bench.upstream.received.length, 0);
    });

    const mistakes: readonly [title: string, body: string, status: number][] = [
      ['that is not JSON', '{', 400],
      ['that is no object', '[1]', 400],
      ['that lacks what is needed', '{"model":"m"}', 400],
      ['that is too large', JSON.stringify({ ...dialect.body, note: 'x'.repeat(4096) }), 413],
    ];
    for (const [title, body, status] of mistakes)
      it(`a body ${title} is refused in the dialect's shape`, async () => {
        await using bench = await open(hello, { bodyLimitBytes: 2048 });
        const answer = await call(bench.url, { headers: bearer(bench.route), body });
        assert.equal(answer.status, status);
        assertEnvelope(name, answer);
        const chunked = await call(bench.url, {
          headers: { ...bearer(bench.route), 'transfer-encoding': 'chunked' },
          body,
        });
        assert.equal(chunked.status, status);
        assert.equal(bench.upstream.received.length, 0);
      });

    it('a body that nests too deeply, or holds too many values, is refused before anything is made of it', async () => {
      await using bench = await open(hello);
      const before = `${bench.body().slice(0, -1)},"more":`;
      const bodies = {
        'nested too deeply': `${before}${'['.repeat(300)}${']'.repeat(300)}}`,
        'too many values': `${before}[${'0,'.repeat(500_000)}0]}`,
      };
      for (const [why, body] of Object.entries(bodies)) {
        const answer = await call(bench.url, { headers: bearer(bench.route), body });
        assert.equal(answer.status, 400, why);
        assert.match(String(assertEnvelope(name, answer)['message']), new RegExp(why));
      }
      assert.equal(bench.upstream.received.length, 0);
    });

    it('another method, and an upgrade to a websocket, are answered at once', async () => {
      await using bench = await open(hello);
      const headers = { ...bearer(bench.route), connection: 'Upgrade', upgrade: 'websocket' };
      const answer = await call(bench.url, { method: 'GET', headers });
      assert.equal(answer.status, 405);
      assertEnvelope(name, answer);
    });

    it('a refusal of the upstream keeps its status where it comes before the answer, and says nothing of its address or key', async () => {
      await using bench = await open((response) => {
        response.writeHead(429, { 'retry-after': '7', 'content-type': 'application/json' });
        response.end('{"error":{"message":"busy: upstream-key-0123456789"}}');
      });
      const answer = await bench.post({ stream: true });
      assert.deepEqual([answer.status, answer.headers['retry-after']], [429, '7']);
      assertEnvelope(name, answer);
      const text = answer.body.toString();
      assert.ok(!text.includes('upstream-key') && !text.includes(`:${bench.upstream.port}`), text);
      assert.equal((await bench.running.relay.activity('r'))?.refusal?.status, 429);
    });

    it('a conversation that is too long is told in the words that make a client compact it', async () => {
      await using bench = await open((response) => {
        response.writeHead(400, { 'content-type': 'application/json' });
        const message =
          "This model's maximum context length is 4096 tokens. However, you requested 5000 tokens.";
        response.end(JSON.stringify({ error: { message, code: 400 } }));
      });
      const answer = await bench.post({ stream: true });
      assert.equal(answer.status, 400);
      const error = assertEnvelope(name, answer);
      if (name === 'messages')
        assert.equal(error['message'], 'prompt is too long: 5000 tokens > 4096 maximum');
      else assert.equal(error['code'], 'context_length_exceeded');
    });

    it('an upstream that dies within an answer ends it with one failure and nothing behind it', async () => {
      await using bench = await open(async (response) => {
        begin(response);
        response.write(chunk({ role: 'assistant', content: 'Hel' }));
        await new Promise((resolve) => setTimeout(resolve, 50));
        response.destroy();
      });
      const names = namesIn(await bench.post({ stream: true }));
      assert.equal(names.at(-1), dialect.failed);
      assert.equal(names.filter((each) => each === dialect.failed).length, 1);
      assert.ok(!names.includes(dialect.ended));
      await bench.post({ stream: true });
      assert.equal((await bench.running.relay.activity('r'))?.refusal?.count, 2);
    });

    it('an upstream that cannot be reached is told without its name and address', async () => {
      await using running = await startRelay();
      const route = await running.route('r', 'http://localhost:9/v1');
      for (const stream of [false, true]) {
        const body = JSON.stringify({ ...dialect.body, stream });
        const url = `${route.baseUrl}${dialect.path}`;
        const answer = await call(url, { headers: bearer(route), body });
        assert.equal(answer.status, 502);
        const { message } = assertEnvelope(name, answer);
        assert.equal(message, "the model's address gives no answer (ECONNREFUSED)");
      }
      const refusal = (await running.relay.activity('r'))?.refusal;
      assert.equal(refusal?.count, 2);
    });

    it('an upstream whose name turns out to be private is told without its name', async () => {
      await using running = await startRelay({
        policy: new UrlPolicy({ allow: [], privateAddresses: 'deny' }),
        lookup: (_name, { all }, callback) =>
          all === true
            ? callback(null, [{ address: '127.0.0.1', family: 4 }])
            : callback(null, '127.0.0.1', 4),
      });
      const route = await running.route('r', 'http://engine.example/v1');
      const url = `${route.baseUrl}${dialect.path}`;
      const answer = await call(url, {
        headers: bearer(route),
        body: JSON.stringify(dialect.body),
      });
      assert.equal(answer.status, 502);
      const { message } = assertEnvelope(name, answer);
      assert.equal(message, "the model's address gives no answer (CALLBACK_URL_REFUSED)");
    });

    it('a body that goes on after its refusal ends with its connection', async () => {
      await using bench = await open(hello, { bodyLimitBytes: 2048 });
      const headers = { ...bearer(bench.route), 'transfer-encoding': 'chunked' };
      const outgoing = request(bench.url, { method: 'POST', headers, agent: false });
      outgoing.on('error', () => undefined);
      const closed = once(outgoing, 'close');
      const answered = once(outgoing, 'response');
      outgoing.write('x'.repeat(3000));
      const [answer] = (await answered) as [IncomingMessage];
      assert.equal(answer.statusCode, 413);
      answer.on('error', () => undefined).resume();
      outgoing.write('x'.repeat(3000));
      await closed;
    });

    it("a client that leaves within its body is nobody's defect", async () => {
      const logged: string[] = [];
      const log = (_level: unknown, message: string) => logged.push(message);
      await using bench = await open(hello, { logger: { ...silentLogger, log } });
      const headers = { ...bearer(bench.route), 'content-length': '100' };
      const outgoing = request(bench.url, { method: 'POST', headers, agent: false });
      outgoing.on('error', () => undefined);
      outgoing.write('{');
      const { relay } = bench.running;
      while (relay.runningCalls === 0) await new Promise((resolve) => setImmediate(resolve));
      outgoing.destroy();
      while (relay.runningCalls > 0) await new Promise((resolve) => setImmediate(resolve));
      assert.deepEqual(logged, []);
      assert.equal(bench.upstream.received.length, 0);
    });

    it('calls of a revoked route finish, also one that still sends its body', async () => {
      let closes = 0;
      await using bench = await open(hello, {
        openEngine: async (options) => {
          const engine = await openEngine(options);
          const close = engine.close.bind(engine);
          engine.close = () => {
            closes += 1;
            return close();
          };
          return engine;
        },
      });
      await bench.post();
      const { relay } = bench.running;
      const body = bench.body();
      const headers = { ...bearer(bench.route), 'content-length': String(body.length) };
      const outgoing = request(bench.url, { method: 'POST', headers, agent: false });
      outgoing.write(body.slice(0, 5));
      while (relay.runningCalls === 0) await new Promise((resolve) => setImmediate(resolve));
      await relay.revoke('r');
      assert.equal(closes, 0);
      outgoing.end(body.slice(5));
      const [answer] = (await once(outgoing, 'response')) as [IncomingMessage];
      assert.equal(answer.statusCode, 200);
      answer.resume();
      while (relay.runningCalls > 0) await new Promise((resolve) => setImmediate(resolve));
      await new Promise((resolve) => setImmediate(resolve));
      assert.equal(closes, 1);
    });

    it('silence brings signs of life, also before the upstream has said anything', async () => {
      const released = Promise.withResolvers<undefined>();
      await using bench = await open(
        async (response, received) => {
          await released.promise;
          await hello(response, received);
        },
        { keepAliveMs: 20 },
      );
      const answer = await openCall(bench.url, {
        headers: bearer(bench.route),
        body: bench.body({ stream: true }),
      });
      let text = '';
      answer.setEncoding('utf8');
      answer.on('data', (piece: string) => {
        text += piece;
        const alive = eventsIn(text).filter(({ event }) => event === dialect.alive);
        if (alive.length >= 3) released.resolve(undefined);
      });
      await once(answer, 'end');
      const names = eventsIn(text).map(({ event }) => event);
      assert.equal(names[0], dialect.begun);
      assert.equal(names.at(-1), dialect.ended);
    });

    it('a client that leaves ends the request upstream', async () => {
      await using bench = await open((response) => {
        begin(response);
        response.write(chunk({ role: 'assistant', content: 'Hel' }));
      });
      const answer = await openCall(bench.url, {
        headers: bearer(bench.route),
        body: bench.body({ stream: true }),
      });
      await once(answer, 'data');
      assert.equal((await bench.running.relay.activity('r'))?.callsRunning, 1);
      answer.destroy();
      await bench.upstream.opened(0);
      while (bench.running.relay.runningCalls > 0)
        await new Promise((resolve) => setImmediate(resolve));
      assert.equal((await bench.running.relay.activity('r'))?.refusal, null);
    });

    it('an abort ends those that stream and those that wait, on both sides, and says how many', async () => {
      await using bench = await open((response, { body }) => {
        if ((JSON.parse(body.toString()) as Json)['stream'] !== true) return;
        begin(response);
        response.write(chunk({ role: 'assistant', content: 'Hel' }));
      });
      const streaming = await openCall(bench.url, {
        headers: bearer(bench.route),
        body: bench.body({ stream: true }),
      });
      const broken = once(streaming, 'error');
      streaming.resume();
      const waiting = bench.post();
      await bench.upstream.opened(2);
      assert.deepEqual(await bench.running.relay.abort('r'), { callsEnded: 2 });
      await broken;
      const answer = await waiting;
      assert.equal(answer.status, dialect.deadKey);
      assertEnvelope(name, answer);
      await bench.upstream.opened(0);
    });
  });
}

describe('what only one dialect has', { timeout: 60_000 }, () => {
  it('a response goes on from the one before it, of the same rollout only', async () => {
    await using upstream = await ChatUpstream.start(hello);
    await using running = await startRelay();
    const [route, other] = [
      await running.route('r', upstream.url),
      await running.route('other', upstream.url),
    ];
    const post = (key: typeof route, body: Json) =>
      call(`${route.baseUrl}/responses`, { headers: bearer(key), body: JSON.stringify(body) });
    const first = jsonIn(await post(route, { model: 'm', input: 'Hi' }));
    const next = { model: 'm', previous_response_id: first['id'] };
    assert.equal((await post(route, { ...next, input: 'And?' })).status, 200);
    const { messages } = JSON.parse(upstream.received[1]!.body.toString()) as Json;
    assert.deepEqual(messages, [
      { role: 'user', content: 'Hi' },
      { role: 'assistant', content: 'Hello' },
      { role: 'user', content: 'And?' },
    ]);
    const foreign = await post(other, { ...next, input: 'And?' });
    assert.equal((jsonIn(foreign)['error'] as Json)['code'], 'previous_response_not_found');
    const unkept = jsonIn(await post(route, { model: 'm', input: 'Hi', store: false }));
    const missing = await post(route, {
      model: 'm',
      previous_response_id: unkept['id'],
      input: '',
    });
    assert.ok(missing.status === 400 || missing.status === 404);
  });

  it('tokens are counted by the upstream, or refused by name', async () => {
    let counts = true;
    await using upstream = await ChatUpstream.start((response, { url }) => {
      if (counts && url === '/tokenize') response.end('{"count":42,"tokens":[]}');
      else response.writeHead(404).end('{}');
    });
    await using running = await startRelay();
    const route = await running.route('r', `${upstream.url}/v1`);
    const count = () =>
      call(`${route.baseUrl}/messages/count_tokens`, {
        headers: bearer(route),
        body: JSON.stringify({ model: 'm', messages: [{ role: 'user', content: 'Hi' }] }),
      });
    assert.deepEqual(jsonIn(await count()), { input_tokens: 42 });
    assert.equal(
      upstream.received.some(({ url }) => url.includes('completions')),
      false,
    );
    counts = false;
    const refused = await count();
    assert.equal(refused.status, 404);
    assert.match(String(assertEnvelope('messages', refused)['message']), /tokens are not counted/);
  });

  it('compaction by the server is refused in words', async () => {
    await using running = await startRelay();
    const route = await running.route('r', 'http://127.0.0.1:9/v1');
    const answer = await call(`${route.baseUrl}/responses/compact`, {
      headers: bearer(route),
      body: '{}',
    });
    assert.equal(answer.status, 404);
    assertEnvelope('responses', answer);
  });
});
