import assert from 'node:assert/strict';
import { once } from 'node:events';
import type { LookupFunction } from 'node:net';
import { describe, it } from 'node:test';
import { fastify } from 'fastify';
import type { RelayedCall } from '../../src/gateway/model-gateway.ts';
import { registerGateway } from '../../src/gateway/register-gateway.ts';
import { ChatUpstream } from '../fakes/chat-upstream.ts';
import { bearer, call, captureWith, openCall, startRelay } from './relay-fixture.ts';

describe('the ends of calls', { timeout: 60_000 }, () => {
  it('an agent that leaves ends the request upstream', async () => {
    await using upstream = await ChatUpstream.start((response) => {
      response.writeHead(200);
      response.write('first');
    });
    const ended: RelayedCall[] = [];
    await using running = await startRelay({ onCall: (each) => ended.push(each) });
    const route = await running.route('r', upstream.url);
    const answer = await openCall(`${route.baseUrl}/chat/completions`, {
      headers: bearer(route),
      body: '{}',
    });
    await once(answer, 'data');
    assert.equal((await running.relay.activity('r'))?.callsRunning, 1);
    answer.destroy();
    await upstream.opened(0);
    while (running.relay.runningCalls > 0) await new Promise((resolve) => setImmediate(resolve));
    assert.deepEqual(
      ended.map(({ status, answerBytes, rolloutId }) => ({ status, answerBytes, rolloutId })),
      [{ status: null, answerBytes: 5, rolloutId: 'r' }],
    );
    assert.equal((await running.relay.activity('r'))?.callsDone, 1);
    assert.equal((await running.relay.activity('r'))?.refusal, null);
  });

  it('an abort ends what runs, streamed or not yet answered, upstream too, and says how many', async () => {
    await using upstream = await ChatUpstream.start((response, { body }) => {
      if (body.toString() === 'silent') return;
      response.writeHead(200);
      response.write('first');
    });
    await using running = await startRelay();
    const route = await running.route('r', upstream.url);
    const other = await running.route('other', upstream.url);
    const url = `${route.baseUrl}/chat/completions`;
    const streaming = await openCall(url, { headers: bearer(route), body: 'stream' });
    const silent = [1, 2].map(() => call(url, { headers: bearer(route), body: 'silent' }));
    const untouched = await openCall(url, { headers: bearer(other), body: 'stream' });
    await upstream.opened(4);
    const broken = once(streaming, 'error');
    streaming.resume();
    // The calls run also where the key is already dead.
    await running.relay.revoke('r');
    assert.equal(await running.relay.activity('r'), null);
    assert.deepEqual(await running.relay.abort('r'), { callsEnded: 3 });
    assert.deepEqual(await running.relay.abort('r'), { callsEnded: 0 });
    await broken;
    for (const answer of await Promise.all(silent)) assert.equal(answer.status, 401);
    await upstream.opened(1);
    assert.equal((await call(url, { headers: bearer(route), body: '{}' })).status, 401);
    assert.equal(upstream.received.length, 4);
    assert.equal((await running.relay.activity('other'))?.callsRunning, 1);
    untouched.destroy();
  });

  it('revoking lets what runs finish', async () => {
    const release = Promise.withResolvers<undefined>();
    await using upstream = await ChatUpstream.start(async (response) => {
      await release.promise;
      response.end('done');
    });
    await using running = await startRelay();
    const route = await running.route('r', upstream.url);
    const url = `${route.baseUrl}/chat/completions`;
    const answer = call(url, { headers: bearer(route), body: '{}' });
    await upstream.opened(1);
    await running.relay.revoke('r');
    await running.relay.revoke('r');
    assert.equal((await call(url, { headers: bearer(route), body: '{}' })).status, 401);
    release.resolve(undefined);
    assert.equal((await answer).body.toString(), 'done');
  });

  it('an observer that throws breaks nothing', async () => {
    await using upstream = await ChatUpstream.start((response) => void response.end('ok'));
    await using running = await startRelay({
      onCall: () => {
        throw new Error('a defect of the observer');
      },
    });
    const route = await running.route('r', upstream.url);
    for (let count = 0; count < 2; count += 1)
      assert.equal(
        (await call(`${route.baseUrl}/models`, { method: 'GET', headers: bearer(route) })).status,
        200,
      );
  });

  for (const [what, status, around, told] of [
    ['a refusal', 400, ['{"detail":', '}'], 500],
    ['an answer', 200, ['{"choices":[{"token_ids":[1],"message":{"content":', '}}]}'], null],
  ] as const)
    it(`${what} that is nested too deeply to be written again ends its call, and nothing else`, async () => {
      const depth = 30_000;
      const deep = around.join('['.repeat(depth) + ']'.repeat(depth));
      await using upstream = await ChatUpstream.start((response, { url }) => {
        const isDeep = url.startsWith('/deep');
        response.writeHead(isDeep ? status : 200, { 'content-type': 'application/json' });
        response.end(isDeep ? deep : '{"choices":[]}');
      });
      const ignored = { sent: () => undefined, part: () => undefined, ended: () => undefined };
      await using running = await startRelay({
        ...{ engineKind: 'vllm', capture: captureWith(() => ignored) },
      });
      const route = await running.route('r', `${upstream.url}/deep`);
      const url = `${route.baseUrl}/chat/completions`;
      const got = await call(url, { headers: bearer(route), body: '{}' }).then(
        (answer) => answer.status,
        () => null, // it broke off
      );
      assert.equal(got, told);
      while (running.relay.runningCalls > 0) await turn();
      assert.equal((await running.relay.activity('r'))?.refusal?.status, status);
      const other = await running.route('other', upstream.url);
      assert.equal((await call(url, { headers: bearer(other), body: '{}' })).status, 200);
    });

  it('hundreds of streams at once end with what they were sent', async () => {
    const streams = 200;
    const all = Promise.withResolvers<undefined>();
    await using upstream = await ChatUpstream.start(async (response, { body }) => {
      response.writeHead(200, { 'content-type': 'text/event-stream' });
      response.write(`data: ${body.toString()}\n\n`);
      await all.promise;
      response.end(`data: end of ${body.toString()}\n\n`);
    });
    await using running = await startRelay();
    const answers = Array.from({ length: streams }, async (_, index) => {
      const route = await running.route(`r${index}`, upstream.url);
      return await call(`${route.baseUrl}/chat/completions`, {
        headers: bearer(route),
        body: `${index}`,
      });
    });
    await upstream.opened(streams);
    assert.equal(running.relay.runningCalls, streams);
    all.resolve(undefined);
    for (const [index, answer] of (await Promise.all(answers)).entries())
      assert.equal(answer.body.toString(), `data: ${index}\n\ndata: end of ${index}\n\n`);
  });
});

describe('a call whose upstream is still being connected to', { timeout: 60_000 }, () => {
  /** Names that are found only when the test says so. */
  function heldLookup(): { asked: Promise<undefined>; answer: () => void; lookup: LookupFunction } {
    const { promise: asked, resolve } = Promise.withResolvers<undefined>();
    const found: (() => void)[] = [];
    return {
      asked,
      answer: () => found.splice(0).forEach((each) => each()),
      lookup: (_name, { all }, callback) => {
        const [address, family] = ['127.0.0.1', 4] as const;
        found.push(() =>
          all === true ? callback(null, [{ address, family }]) : callback(null, address, family),
        );
        resolve(undefined);
      },
    };
  }

  for (const [who, end, status] of [
    ['an abort', 'abort', 401],
    ['its agent, which leaves,', 'leave', null],
    ['the end of the gateway', 'close', 401],
  ] as const)
    it(`is ended by ${who} at once, and never asks it`, async () => {
      await using upstream = await ChatUpstream.start((response) => void response.end('ok'));
      const names = heldLookup();
      const ended: RelayedCall[] = [];
      await using running = await startRelay({
        lookup: names.lookup,
        onCall: (each) => ended.push(each),
      });
      const route = await running.route('r', `http://controller.example:${upstream.port}`);
      const url = `${route.baseUrl}/chat/completions`;
      const agent = new AbortController();
      const answer = call(url, { headers: bearer(route), body: '{}', signal: agent.signal }).then(
        (given) => given.status,
        () => null,
      );
      await names.asked;
      if (end === 'abort') assert.deepEqual(await running.relay.abort('r'), { callsEnded: 1 });
      else if (end === 'close') await running.relay.close();
      else agent.abort();
      assert.equal(await answer, status);
      while (running.relay.runningCalls > 0) await new Promise((resolve) => setImmediate(resolve));
      assert.deepEqual(
        ended.map((each) => [each.rolloutId, each.status]),
        [['r', status]],
      );
      names.answer();
      if (end === 'close') return;
      // The connection comes about and serves the next call; the one that ended is not sent on it.
      const next = await running.route('next', `http://controller.example:${upstream.port}`);
      const path = `${next.baseUrl}/models`;
      const served = call(path, { method: 'GET', headers: bearer(next) });
      const isServed = served.then(() => true);
      while (!(await Promise.race([isServed, turn()]))) names.answer();
      assert.equal((await served).status, 200);
      assert.deepEqual(
        upstream.received.map((each) => each.method),
        ['GET'],
      );
      assert.equal(ended.length, 2);
    });
});

async function turn(): Promise<boolean> {
  return await new Promise((resolve) => setImmediate(() => resolve(false)));
}

describe('the mounted gateway', { timeout: 60_000 }, () => {
  it('takes its paths before the framework and leaves the rest to it', async () => {
    await using upstream = await ChatUpstream.start((response) => void response.end('ok'));
    await using running = await startRelay();
    const server = fastify();
    let seen = 0;
    server.addHook('onRequest', (_request, _reply, done) => {
      seen += 1;
      done();
    });
    server.get('/health', () => ({ status: 'ok' }));
    registerGateway(server, running.relay);
    const url = await server.listen({ host: '127.0.0.1', port: 0 });
    try {
      const route = await running.route('r', upstream.url);
      const answer = await call(`${url}/v1/chat/completions`, {
        headers: bearer(route),
        body: '{}',
      });
      assert.deepEqual([answer.status, answer.body.toString()], [200, 'ok']);
      assert.equal((await call(`${url}/k/wrong/v1/models`, { method: 'GET' })).status, 401);
      assert.equal(seen, 0);
      assert.equal((await call(`${url}/health`, { method: 'GET' })).status, 200);
      assert.equal((await call(`${url}/v1/chat/completionsx`, { body: '{}' })).status, 404);
      assert.equal(seen, 2);
      for (const path of ['/v1/model%73', '/k/wrong/v1/%6dodels', '/v1/chat/completion%73?a=b'])
        assert.equal((await call(url + path, { body: '{}' })).status, 404, path);
      const injected = await server.inject({
        ...{ method: 'POST', url: '/v1/chat/completions', payload: '{not json' },
        headers: { authorization: 'Bearer wrong', 'content-type': 'application/json' },
      });
      assert.equal(injected.statusCode, 401);
    } finally {
      await server.close();
    }
  });
});
