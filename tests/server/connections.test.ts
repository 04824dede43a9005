/** What a connection does that is no proper request: on real sockets. */
import assert from 'node:assert/strict';
import { connect, type Socket } from 'node:net';
import { describe, it } from 'node:test';
import { silentLogger } from '../../src/core/logger.ts';
import { buildDataServer } from '../../src/server/data-server.ts';
import { healthOf } from '../../src/server/routes/health.ts';
import { defaultServerLimits } from '../../src/server/ports.ts';
import { FakeRolloutService } from '../fakes/fake-rollout-service.ts';
import { controlKey, Serving, threeKeys } from './serving.ts';

const generous = 30_000;

/** Everything that comes until the other side ends the connection. */
async function answerTo(port: number, send: (socket: Socket) => void): Promise<string> {
  const socket = connect(port, '127.0.0.1');
  socket.setEncoding('utf8').setTimeout(generous, () => socket.destroy(new Error('no answer')));
  send(socket);
  let text = '';
  for await (const chunk of socket as AsyncIterable<string>) text += chunk;
  return text;
}

async function portOf(serving: Serving): Promise<number> {
  return Number(new URL(await serving.app.listen({ host: '127.0.0.1', port: 0 })).port);
}

describe('a connection', () => {
  it('is ended when a request does not arrive in time, headers or body', async () => {
    await using serving = new Serving({
      limits: { headersTimeoutMs: 100, requestTimeoutMs: 200 },
    });
    const port = await portOf(serving);
    const rows = [
      'POST /rollout HTTP/1.1\r\nHost: x\r\n',
      'POST /rollout HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n{',
    ];
    const answers = await Promise.all(
      rows.map((head) => answerTo(port, (socket) => void socket.write(head))),
    );
    for (const answer of answers) {
      assert.match(answer, /^HTTP\/1\.1 408 Request Timeout\r\n/);
      assert.match(answer, /\{"detail":"Request Timeout"\}$/);
    }
  });

  it('gets 431 for headers and addresses that are too long, and 400 for what is no HTTP', async () => {
    await using serving = new Serving();
    const port = await portOf(serving);
    const rows = [
      [`GET /health HTTP/1.1\r\nHost: x\r\nX-A: ${'a'.repeat(20_000)}\r\n\r\n`, 431],
      [`GET /${'a'.repeat(20_000)} HTTP/1.1\r\nHost: x\r\n\r\n`, 431],
      ['nonsense\r\n\r\n', 400],
    ] as const;
    for (const [head, status] of rows) {
      const answer = await answerTo(port, (socket) => void socket.write(head));
      assert.match(answer, new RegExp(`^HTTP/1\\.1 ${status} `));
      assert.match(answer, /\{"detail":"[\w ]+"\}$/);
    }
  });

  it('is refused a body that is announced as too large, before it is sent', async () => {
    await using serving = new Serving({ limits: { bodyBytes: 1_000 } });
    const port = await portOf(serving);
    const head =
      'POST /rollout HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 99999999\r\n\r\n';
    const answer = await answerTo(port, (socket) => void socket.write(head));
    assert.match(answer, /^HTTP\/1\.1 413 /);
    assert.match(answer, /BODY_TOO_LARGE/);
  });

  it('is told of a path or method that is not there before it sends a body', async () => {
    await using serving = new Serving();
    const port = await portOf(serving);
    for (const [path, status] of [
      ['/nowhere', 404],
      ['/health', 405],
    ] as const) {
      const head = `POST ${path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: 1000\r\n\r\n`;
      const answer = await answerTo(port, (socket) => void socket.write(head));
      assert.match(answer, new RegExp(`^HTTP/1\\.1 ${status} `));
    }
  });
});

describe('a request with a whole address', () => {
  it('goes where its path says, with the key that stands in it', async () => {
    await using serving = new Serving({ keys: threeKeys });
    const port = await portOf(serving);
    for (const [target, status] of [
      ['http://elsewhere:1/health', 200],
      [`http://elsewhere:1/k/${controlKey}/api/v1/rollouts`, 200],
      ['http://elsewhere:1/k/wrong/api/v1/rollouts', 401],
      ['http://elsewhere:1', 404],
    ] as const) {
      const head = `GET ${target} HTTP/1.1\r\nHost: elsewhere:1\r\nConnection: close\r\n\r\n`;
      const answer = await answerTo(port, (socket) => void socket.write(head));
      assert.match(answer, new RegExp(`^HTTP/1\\.1 ${status} `), target);
    }
  });
});

describe('the data server', () => {
  it('has the health of the server, without why it is paused, and nothing of its control', async () => {
    const service = new FakeRolloutService();
    const paused = { reason: 'secret', since: service.now, retryAt: service.now };
    service.view = { ...service.view, paused };
    const app = buildDataServer({
      ...{ logger: silentLogger, limits: defaultServerLimits },
      health: () => healthOf(service, { instanceId: 'i-1', isKnownCaller: false }),
      mountGateway: (server) => void server.post('/v1/chat/completions', () => ({})),
    });
    const health = (await app.inject({ url: '/health' })).json<Record<string, unknown>>();
    assert.deepEqual(
      [health['capacity'], health['instance_id'], health['paused'], health['paused_reason']],
      [service.view.capacity, 'i-1', true, undefined],
    );
    for (const url of ['/rollout', '/api/v1/rollouts', '/metrics', '/rollout/cancel'])
      assert.equal((await app.inject({ url })).statusCode, 404);
    assert.equal((await app.inject({ method: 'POST', url: '/health' })).statusCode, 405);
    await app.close();
  });
});
