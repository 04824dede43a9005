import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer } from 'node:net';
import type { AddressInfo, LookupFunction } from 'node:net';
import { describe, it } from 'node:test';
import { isRolloutError } from '../../src/core/errors.ts';
import { UrlPolicy } from '../../src/wire/url-policy.ts';
import { ChatUpstream } from '../fakes/chat-upstream.ts';
import { bearer, call, openCall, startRelay } from './relay-fixture.ts';

interface ErrorDocument {
  readonly error: { readonly message: string; readonly type: string; readonly code: string };
}

const errorOf = (body: Buffer): ErrorDocument['error'] =>
  (JSON.parse(body.toString()) as ErrorDocument).error;

describe('what goes upstream', { timeout: 60_000 }, () => {
  it('keeps the address of the controller byte for byte, its query included', async () => {
    await using upstream = await ChatUpstream.start((response) => void response.end('{}'));
    await using running = await startRelay();
    const paths: readonly (readonly [given: string, arrives: string])[] = [
      ['', '/chat/completions'],
      ['/', '/chat/completions'],
      ['/v1', '/v1/chat/completions'],
      ['/r/a%2Fb%20c/../v1/', '/r/a%2Fb%20c/../v1/chat/completions'],
      ['/s/%C3%A9//x?sig=a%2Bb%3D&x=1&x=2', '/s/%C3%A9//x/chat/completions?sig=a%2Bb%3D&x=1&x=2'],
    ];
    for (const [index, [given]] of paths.entries()) {
      const route = await running.route(`r${index}`, upstream.url + given);
      const url = `${route.baseUrl}/chat/completions?sig=mine`;
      assert.equal((await call(url, { headers: bearer(route), body: '{}' })).status, 200);
    }
    assert.deepEqual(
      upstream.received.map(({ url }) => url),
      paths.map(([, arrives]) => arrives),
    );
  });

  it('is the body as it came, with the key of the controller and without ours', async () => {
    await using upstream = await ChatUpstream.start((response) => void response.end('{}'));
    await using running = await startRelay();
    const route = await running.route('r', upstream.url);
    const body = Buffer.from(
      '{ "model":"m",\r\n"x": 1.0, "bad": "\ud800" , "not json\u0000\xff',
      'latin1',
    );
    await call(`${route.baseUrl}/chat/completions`, {
      headers: {
        ...bearer(route),
        'content-type': 'application/json; charset=utf-8',
        'x-api-key': route.apiKey,
        'x-echo': `a ${route.apiKey}`,
        'x-kept': 'yes',
        'x-hop': 'no',
        connection: 'x-hop, close',
        te: 'trailers',
        cookie: 'a=b',
        'accept-encoding': 'gzip',
        'x-forwarded-for': '10.0.0.1',
      },
      body,
    });
    const [received] = upstream.received;
    assert.ok(received);
    assert.deepEqual(received.body, body);
    assert.ok(!received.rawHeaders.join('\n').includes(route.apiKey));
    const { authorization, host, connection, ...headers } = received.headers;
    assert.equal(authorization, 'Bearer upstream-key-0123456789');
    assert.equal(host, `127.0.0.1:${upstream.port}`);
    assert.equal(connection, 'keep-alive');
    assert.deepEqual(headers, {
      'content-type': 'application/json; charset=utf-8',
      'content-length': String(body.length),
      'x-kept': 'yes',
    });
  });

  it('has no authorisation where the controller gave no key', async () => {
    await using upstream = await ChatUpstream.start((response) => void response.end('{}'));
    await using running = await startRelay();
    const route = await running.route('r', upstream.url, null);
    const answer = await call(`${route.baseUrl}/models`, { method: 'GET', headers: bearer(route) });
    assert.equal(answer.status, 200);
    assert.equal(upstream.received[0]!.url, '/models');
    assert.equal(upstream.received[0]!.headers.authorization, undefined);
  });

  it('is refused at registration where there is no address', async () => {
    await using running = await startRelay();
    for (const [url, code] of [
      ['', 'MODEL_UNSPECIFIED'],
      ['  ', 'MODEL_UNSPECIFIED'],
      ['ftp://x', 'CONFIG_INVALID'],
      ['nonsense', 'CONFIG_INVALID'],
    ] as const)
      await assert.rejects(running.route('r', url), (error) => isRolloutError(error, code));
    assert.equal(running.relay.liveRoutes, 0);
  });
});

describe('the policy for upstreams', { timeout: 60_000 }, () => {
  const deny = new UrlPolicy({ allow: [], privateAddresses: 'deny' });
  /** Every name is this machine. */
  const lookup: LookupFunction = (_name, { all }, callback) => {
    if (all === true) callback(null, [{ address: '127.0.0.1', family: 4 }]);
    else callback(null, '127.0.0.1', 4);
  };

  it('refuses a private address at registration, and a name that becomes one at the connection', async () => {
    await using upstream = await ChatUpstream.start((response) => void response.end('ok'));
    await using running = await startRelay({ policy: deny, lookup });
    await assert.rejects(running.route('r', upstream.url), (error) =>
      isRolloutError(error, 'CALLBACK_URL_REFUSED'),
    );
    const route = await running.route('r', `http://controller.example:${upstream.port}/v1`);
    const answer = await call(`${route.baseUrl}/chat/completions`, {
      headers: bearer(route),
      body: '{}',
    });
    assert.equal(answer.status, 502);
    assert.match(errorOf(answer.body).message, /CALLBACK_URL_REFUSED/);
    assert.equal(upstream.received.length, 0);
  });

  it('lets a name through where private addresses are allowed', async () => {
    await using upstream = await ChatUpstream.start((response) => void response.end('ok'));
    await using running = await startRelay({ lookup });
    const route = await running.route('r', `http://controller.example:${upstream.port}/v1`);
    const answer = await call(`${route.baseUrl}/chat/completions`, {
      headers: bearer(route),
      body: '{}',
    });
    assert.equal(answer.status, 200);
    assert.equal(upstream.received[0]!.headers.host, `controller.example:${upstream.port}`);
  });
});

describe('keys', { timeout: 60_000 }, () => {
  it('come as bearer, as x-api-key or in the path, with or without /v1', async () => {
    await using upstream = await ChatUpstream.start((response) => void response.end('ok'));
    await using running = await startRelay();
    const route = await running.route('r', upstream.url);
    const { apiKey } = route;
    const ways: readonly (readonly [path: string, headers: Record<string, string>])[] = [
      ['/v1/chat/completions', bearer(route)],
      ['/chat/completions', { authorization: `bearer  ${apiKey}` }],
      ['/v1/chat/completions', { 'x-api-key': apiKey }],
      ['/v1/chat/completions', { 'x-api-key': apiKey, ...bearer(route) }],
      ['/v1/chat/completions', { 'x-api-key': apiKey, authorization: 'Basic abc' }],
      [`/k/${apiKey}/v1/chat/completions`, {}],
      [`/k/${apiKey}/chat/completions`, { authorization: 'Bearer placeholder' }],
    ];
    for (const [path, headers] of ways)
      assert.equal((await call(running.url + path, { headers, body: '{}' })).status, 200, path);
    assert.equal(upstream.received.length, ways.length);
    assert.ok(upstream.received.every(({ url }) => url === '/chat/completions'));
  });

  it('that are missing, wrong, of two minds or dead are answered 401 and touch no upstream', async () => {
    await using upstream = await ChatUpstream.start((response) => void response.end('ok'));
    await using running = await startRelay();
    const dead = await running.route('dead', upstream.url);
    await running.relay.revoke('dead');
    const replaced = await running.route('r', upstream.url);
    const route = await running.route('r', upstream.url);
    const ways: readonly (readonly [path: string, headers: Record<string, string>])[] = [
      ['/v1/chat/completions', {}],
      ['/v1/chat/completions', { authorization: '' }],
      ['/v1/chat/completions', { authorization: 'Bearer ' }],
      ['/v1/chat/completions', { authorization: `Basic ${route.apiKey}` }],
      ['/v1/chat/completions', { authorization: 'Bearer upstream-key-0123456789' }],
      ['/v1/chat/completions', { ...bearer(route), 'x-api-key': dead.apiKey }],
      ['/v1/chat/completions', bearer(dead)],
      ['/v1/chat/completions', bearer(replaced)],
      ['/k/wrong/v1/chat/completions', bearer(route)],
      [`/k/${dead.apiKey}/v1/models`, {}],
    ];
    for (const [path, headers] of ways) {
      const answer = await call(running.url + path, { headers, body: '{not json' });
      assert.equal(answer.status, 401, path);
      assert.equal(errorOf(answer.body).code, 'ROUTE_KEY_INVALID');
      assert.equal(errorOf(answer.body).type, 'authentication_error');
    }
    assert.equal(upstream.received.length, 0);
  });

  it('reach only the upstream of their own rollout', async () => {
    await using one = await ChatUpstream.start((response) => void response.end('one'));
    await using other = await ChatUpstream.start((response) => void response.end('other'));
    await using running = await startRelay();
    const first = await running.route('one', one.url);
    const second = await running.route('other', other.url);
    for (const [route, expected] of [
      [first, 'one'],
      [second, 'other'],
    ] as const) {
      const answer = await call(`${route.baseUrl}/chat/completions`, {
        headers: bearer(route),
        body: '{}',
      });
      assert.equal(answer.body.toString(), expected);
    }
  });
});

describe('answers', { timeout: 60_000 }, () => {
  it('come back with status, type and bytes as they are, whole or in pieces', async () => {
    const bytes = Buffer.from([0, 255, 10, 13, 0xc3, 0x28, 65]);
    await using upstream = await ChatUpstream.start((response, { body }) => {
      response.setHeader('content-type', 'application/vnd.x+json; q=1');
      response.setHeader('x-request-id', 'abc');
      response.setHeader('set-cookie', 'session=1');
      response.statusCode = 201;
      if (body.toString() === 'whole') response.setHeader('content-length', bytes.length);
      response.write(bytes.subarray(0, 3));
      response.end(bytes.subarray(3));
    });
    await using running = await startRelay();
    const route = await running.route('r', upstream.url);
    for (const body of ['whole', 'pieces']) {
      const answer = await call(`${route.baseUrl}/chat/completions`, {
        headers: bearer(route),
        body,
      });
      assert.equal(answer.status, 201);
      assert.deepEqual(answer.body, bytes);
      assert.equal(answer.headers['content-type'], 'application/vnd.x+json; q=1');
      assert.equal(answer.headers['x-request-id'], 'abc');
      assert.equal(answer.headers['set-cookie'], undefined);
      assert.equal(
        answer.headers['content-length'],
        body === 'whole' ? String(bytes.length) : undefined,
      );
    }
  });

  it('that stream arrive piece by piece, head first, before the upstream ends', async () => {
    const steps = [Promise.withResolvers<undefined>(), Promise.withResolvers<undefined>()] as const;
    await using upstream = await ChatUpstream.start(async (response) => {
      response.writeHead(200, { 'content-type': 'text/event-stream' });
      response.flushHeaders();
      await steps[0].promise;
      response.write('data: 1\n\n');
      await steps[1].promise;
      response.end('data: [DONE]\n\n');
    });
    await using running = await startRelay();
    const route = await running.route('r', upstream.url);
    const answer = await openCall(`${route.baseUrl}/chat/completions`, {
      headers: bearer(route),
      body: '{}',
    });
    assert.equal(answer.headers['content-type'], 'text/event-stream');
    assert.equal((await running.relay.activity('r'))?.waiting?.bytes, 0);
    steps[0].resolve(undefined);
    const [piece] = (await once(answer, 'data')) as [Buffer];
    assert.equal(piece.toString(), 'data: 1\n\n');
    assert.equal((await running.relay.activity('r'))?.waiting?.bytes, 9);
    steps[1].resolve(undefined);
    const [last] = (await once(answer, 'data')) as [Buffer];
    assert.equal(last.toString(), 'data: [DONE]\n\n');
  });

  it('are read from upstream no faster than the agent reads them', async () => {
    const piece = Buffer.alloc(64 * 1024, 'x');
    const total = 1_024;
    let written = 0;
    await using upstream = await ChatUpstream.start(async (response) => {
      response.writeHead(200);
      for (; written < total; written += 1)
        if (!response.write(piece)) await once(response, 'drain');
      response.end();
    });
    await using running = await startRelay();
    const route = await running.route('r', upstream.url);
    const answer = await openCall(`${route.baseUrl}/chat/completions`, {
      headers: bearer(route),
      body: '{}',
    });
    // Nobody reads: what is written settles where the buffers of sockets are full, far below the whole.
    let before = -1;
    while (before !== written) {
      before = written;
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
    assert.ok(written < total / 2, `${written} of ${total} pieces are under way`);
    let size = 0;
    for await (const chunk of answer as AsyncIterable<Buffer>) size += chunk.length;
    assert.equal(size, total * piece.length);
  });

  it('that break off upstream break off for the agent too', async () => {
    await using upstream = await ChatUpstream.start((response) => {
      response.writeHead(200, { 'content-type': 'text/event-stream' });
      response.write('data: 1\n\n');
    });
    await using running = await startRelay();
    const route = await running.route('r', upstream.url);
    const answer = await openCall(`${route.baseUrl}/chat/completions`, {
      headers: bearer(route),
      body: '{}',
    });
    await once(answer, 'data');
    const broken = once(answer, 'error');
    answer.resume();
    upstream.cutConnections();
    await broken;
    const refusal = (await running.relay.activity('r'))?.refusal;
    assert.deepEqual([refusal?.status, refusal?.count], [null, 1]);
    assert.match(refusal?.message ?? '', /^the answer broke off/);
  });
});

describe('refusals', { timeout: 60_000 }, () => {
  const refusals: readonly {
    readonly name: string;
    readonly status: number;
    readonly body: string;
    readonly gets: number;
    readonly says: string;
    readonly isKept: boolean;
  }[] = [
    {
      ...{ name: 'an OpenAI error', status: 429, gets: 429, isKept: true, says: 'slow down' },
      body: '{"error": {"message":"slow down", "type":"x","code":null}}',
    },
    {
      ...{ name: 'an error of SGLang', status: 400, gets: 400, isKept: true, says: 'too long' },
      body: '{"object":"error","message":"too long","code":400}',
    },
    {
      ...{ name: 'a FastAPI detail', status: 422, gets: 422, isKept: false, says: 'not known' },
      body: '{"detail":"not known"}',
    },
    {
      ...{ name: 'a page', status: 503, gets: 503, isKept: false, says: '<html>busy</html>' },
      body: '<html>busy</html>',
    },
    { ...{ name: 'nothing', status: 500, gets: 500, isKept: false, says: 'status 500' }, body: '' },
    {
      ...{ name: 'a redirection', status: 307, gets: 502, isKept: false },
      ...{ says: "the model's address answers with the redirection 307", body: 'elsewhere' },
    },
  ];
  for (const { name, status, body, gets, says, isKept } of refusals)
    it(`of the upstream by ${name} reach the agent in a shape that it reads`, async () => {
      await using upstream = await ChatUpstream.start((response) => {
        response.writeHead(status, { 'retry-after': '7', location: 'http://secret.example/' });
        response.end(body);
      });
      await using running = await startRelay();
      const route = await running.route('r', upstream.url);
      for (let count = 1; count <= 2; count += 1) {
        const answer = await call(`${route.baseUrl}/chat/completions`, {
          headers: bearer(route),
          body: '{}',
        });
        assert.equal(answer.status, gets);
        assert.equal(answer.headers.location, undefined);
        if (isKept) assert.equal(answer.body.toString(), body);
        else assert.equal(errorOf(answer.body).message, says);
        if (gets === status) assert.equal(answer.headers['retry-after'], '7');
        const refusal = (await running.relay.activity('r'))?.refusal;
        assert.deepEqual(
          [refusal?.status, refusal?.message, refusal?.count],
          [status, says, count],
        );
      }
    });

  it('never show the key of the upstream, wherever it stands', async () => {
    const key = 'upstream-key-0123456789';
    await using upstream = await ChatUpstream.start((response) => {
      response.writeHead(401, { 'x-your-key': key });
      response.end(JSON.stringify({ error: { message: `bad key ${key}`, type: 'x' } }));
    });
    await using running = await startRelay();
    const route = await running.route('r', upstream.url, key);
    const answer = await call(`${route.baseUrl}/chat/completions`, {
      headers: bearer(route),
      body: '{}',
    });
    assert.equal(answer.status, 401);
    assert.ok(!JSON.stringify(answer.headers).includes(key));
    assert.ok(!answer.body.toString().includes(key));
    assert.ok(!JSON.stringify(await running.relay.activity('r')).includes(key));
    assert.equal(errorOf(answer.body).message, 'bad key [REDACTED]');
  });

  it('of a connection are a 502 that names no address, and are over with the next success', async () => {
    const closed = createServer().listen(0, '127.0.0.1');
    await once(closed, 'listening');
    const { port } = closed.address() as AddressInfo;
    closed.close();
    await once(closed, 'close');
    await using running = await startRelay();
    const route = await running.route('r', `http://127.0.0.1:${port}/v1`);
    const answer = await call(`${route.baseUrl}/chat/completions`, {
      headers: bearer(route),
      body: 'x'.repeat(1_000_000),
    });
    assert.equal(answer.status, 502);
    assert.equal(errorOf(answer.body).code, 'upstream_unreachable');
    assert.ok(!answer.body.toString().includes(String(port)));
    assert.deepEqual(
      [
        (await running.relay.activity('r'))?.refusal?.status,
        (await running.relay.activity('r'))?.callsDone,
      ],
      [null, 1],
    );
  });

  it('of the relay itself: method, size and number of calls', async () => {
    const held: (() => void)[] = [];
    await using upstream = await ChatUpstream.start((response, { body }) => {
      if (body.toString() === 'hold') held.push(() => response.end('{}'));
      else response.end('{}');
    });
    await using running = await startRelay({ maxCallsPerRollout: 2, bodyLimitBytes: 1_000 });
    const route = await running.route('r', upstream.url);
    const url = `${route.baseUrl}/chat/completions`;
    const headers = bearer(route);
    const get = await call(url, { method: 'GET', headers });
    assert.deepEqual([get.status, get.headers.allow], [405, 'POST']);
    assert.equal((await call(url, { headers, body: 'x'.repeat(1_001) })).status, 413);
    const chunked = { ...headers, 'transfer-encoding': 'chunked' };
    const large = await call(url, { headers: chunked, body: 'x'.repeat(300_000) });
    assert.deepEqual([large.status, errorOf(large.body).code], [413, 'BODY_TOO_LARGE']);
    assert.equal((await call(url, { headers: chunked, body: 'x'.repeat(1_000) })).status, 200);
    const running1 = call(url, { headers, body: 'hold' });
    const running2 = call(url, { headers, body: 'hold' });
    await upstream.opened(2);
    const third = await call(url, { headers, body: '{}' });
    assert.deepEqual([third.status, third.headers['retry-after']], [429, '1']);
    while (held.length < 2) await new Promise((resolve) => setImmediate(resolve));
    for (const release of held) release();
    assert.deepEqual([(await running1).status, (await running2).status], [200, 200]);
    assert.equal((await call(url, { headers, body: '{}' })).status, 200);
  });
});
