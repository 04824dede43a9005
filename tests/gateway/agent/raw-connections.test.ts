import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import { connect, type AddressInfo, type Socket } from 'node:net';
import { describe, it } from 'node:test';
import { systemClock } from '../../../src/core/clock.ts';
import { silentLogger } from '../../../src/core/logger.ts';
import { openEngine } from '../../../src/engines/registry.ts';
import type { RawConnections } from '../../../src/gateway/agent/raw-connections.ts';
import { ModelGateway, type ModelGatewayOptions } from '../../../src/gateway/model-gateway.ts';
import type { RelayedCall } from '../../../src/gateway/model-gateway.ts';
import { noRules } from '../../../src/wire/rollout/route-rules.ts';
import { ChatUpstream, type Answer } from '../../fakes/chat-upstream.ts';
import { ManualClock } from '../../fakes/manual-clock.ts';
import { until } from '../../support/until.ts';
import { RandomDraws } from '../proof/random-draws.ts';
import { anyUpstream, captureWith } from '../relay-fixture.ts';
import { ScriptedUpstream } from '../upstream/scripted-upstream.ts';

/** A gateway whose server reads its connections itself, an upstream, and how many requests came to `node:http`. */
class RawServing implements AsyncDisposable {
  readonly gateway: ModelGateway;
  readonly upstream: ChatUpstream;
  readonly server: Server;
  readonly ended: RelayedCall[] = [];
  connections: RawConnections | null = null;
  handled = 0;
  key = '';

  private constructor(upstream: ChatUpstream, options: Partial<ModelGatewayOptions>) {
    this.upstream = upstream;
    this.gateway = new ModelGateway({
      ...{ baseUrl: () => '', clock: systemClock, logger: silentLogger },
      ...{ policy: anyUpstream, openEngine, onCall: (call) => this.ended.push(call) },
      ...options,
    });
    this.server = createServer((request, response) => {
      this.handled += 1;
      if (!this.gateway.handle(request, response)) response.writeHead(404).end('none');
    });
  }

  static async start(
    answer: Answer,
    options: Partial<ModelGatewayOptions> & { readonly isRaw?: boolean } = {},
  ): Promise<RawServing> {
    const { isRaw = true, ...gatewayOptions } = options;
    const serving = new RawServing(await ChatUpstream.start(answer), gatewayOptions);
    if (isRaw) serving.connections = serving.gateway.readConnections(serving.server);
    serving.server.listen(0, '127.0.0.1');
    await once(serving.server, 'listening');
    serving.key = await serving.route('r');
    return serving;
  }

  async route(rolloutId: string, rules = noRules): Promise<string> {
    const upstream = { upstreamUrl: this.upstream.url, upstreamKey: 'upstream-key-0123456789' };
    return (await this.gateway.register({ rolloutId, ...upstream, rules })).apiKey;
  }

  connect(): Client {
    return new Client(connect((this.server.address() as AddressInfo).port, '127.0.0.1'));
  }

  request(body: string, lines: readonly string[] = [], path = '/v1/chat/completions'): string {
    const head = [
      `POST ${path} HTTP/1.1`,
      'Host: x',
      `Authorization: Bearer ${this.key}`,
      ...lines,
    ];
    return `${head.join('\r\n')}\r\nContent-Length: ${body.length}\r\n\r\n${body}`;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.connections?.close();
    await this.gateway.close();
    this.server.closeAllConnections();
    this.server.close();
    await once(this.server, 'close');
    await this.upstream[Symbol.asyncDispose]();
  }
}

class Client {
  readonly socket: Socket;
  received = '';
  isEnded = false;

  constructor(socket: Socket) {
    this.socket = socket;
    socket.setEncoding('latin1');
    socket.setNoDelay(true);
    socket.on('data', (text: string) => (this.received += text));
    socket.on('end', () => (this.isEnded = true));
    socket.on('close', () => (this.isEnded = true));
    socket.on('error', () => undefined);
  }

  async got(pattern: RegExp): Promise<string> {
    await until(`${pattern.source} in ${this.received}`, () => pattern.test(this.received));
    const text = this.received;
    this.received = '';
    return text;
  }
}

const echo: Answer = (response, { body }) => {
  const text = `got ${body.toString('latin1')}.`;
  response.writeHead(200, { 'content-type': 'text/plain', 'content-length': text.length });
  response.end(text, 'latin1');
};

describe('a connection of calls', { timeout: 60_000 }, () => {
  it('is served without node:http, one call after the other, each with its own answer', async () => {
    await using serving = await RawServing.start(echo);
    const client = serving.connect();
    for (const body of ['one', 'two']) {
      client.socket.write(serving.request(body));
      const answer = await client.got(/\.$/);
      assert.match(answer, /^HTTP\/1\.1 200 OK\r\n/);
      assert.match(answer, /\r\ncontent-length: 8\r\n/);
      assert.match(answer, /\r\ndate: \w{3}, \d\d \w{3} \d{4} \d\d:\d\d:\d\d GMT\r\n/);
      assert.ok(answer.endsWith(`\r\nconnection: keep-alive\r\n\r\ngot ${body}.`), answer);
    }
    assert.equal(serving.handled, 0);
    assert.deepEqual(
      serving.ended.map(({ status, answerBytes }) => [status, answerBytes]),
      [
        [200, 8],
        [200, 8],
      ],
    );
    client.socket.destroy();
  });

  it('answers requests that come all at once in their order, whatever they are', async () => {
    await using serving = await RawServing.start(echo);
    const client = serving.connect();
    const other = 'GET /elsewhere HTTP/1.1\r\nHost: x\r\n\r\n';
    const last = serving.request('four', ['Connection: close']);
    client.socket.write(serving.request('one') + serving.request('two') + other + last);
    await until('the end', () => client.isEnded);
    const answers = client.received.match(/got \w+\.|HTTP\/1\.1 404|none/g);
    assert.deepEqual(answers, ['got one.', 'got two.', 'HTTP/1.1 404', 'none', 'got four.']);
    assert.equal(serving.handled, 2);
  });

  for (const [name, lines, path, status] of [
    ['a key that nobody has', ['X-Api-Key: other'], undefined, 401],
    ['another path', [], '/v1/chat/completionsx', 404],
    ['an expectation', ['Expect: 100-continue'], undefined, 200],
    ['a query, as any other', [], '/v1/chat/completions?a=b', 200],
    ['two framings', ['Transfer-Encoding: chunked'], undefined, 400],
    ['two lengths', ['Content-Length: 3'], undefined, 400],
  ] as const)
    it(`of a request with ${name} is answered ${status}`, async () => {
      await using serving = await RawServing.start(echo);
      const client = serving.connect();
      client.socket.write(serving.request('first'));
      await client.got(/first\.$/);
      client.socket.write(serving.request('body', lines, path));
      await client.got(new RegExp(`HTTP/1.1 ${status} `));
      // What is refused for its form has no request at all.
      assert.equal(serving.handled, status === 400 || (path ?? '').includes('?') ? 0 : 1);
      assert.equal(serving.upstream.received.length, status === 200 ? 2 : 1);
      client.socket.destroy();
    });

  it('takes large bodies piece by piece, and heads that come in pieces', async () => {
    await using serving = await RawServing.start(echo);
    const client = serving.connect();
    const large = 'x'.repeat(3_000_000);
    client.socket.write(serving.request(large));
    assert.ok((await client.got(/x\.$/)).endsWith(`got ${large}.`));
    assert.equal(serving.handled, 0);
    const request = serving.request('small');
    client.socket.write(request.slice(0, 30));
    await until('the beginning', async () => {
      const [open] = await new Promise<[number]>((resolve) =>
        serving.server.getConnections((_error, count) => resolve([count])),
      );
      return open === 1;
    });
    client.socket.write(request.slice(30));
    await client.got(/got small\.$/);
    client.socket.destroy();
  });

  it('brings a stream as it comes, head first, with an end', async () => {
    const steps = [0, 1, 2].map(() => Promise.withResolvers<undefined>());
    await using serving = await RawServing.start(async (response) => {
      response.writeHead(200, { 'content-type': 'text/event-stream' });
      response.flushHeaders();
      for (const [index, step] of steps.entries()) {
        await step.promise;
        response.write(`data: ${index}\n\n`);
      }
      response.end();
    });
    const client = serving.connect();
    client.socket.write(serving.request('{}'));
    const head = await client.got(/\r\n\r\n$/);
    assert.match(head, /transfer-encoding: chunked\r\n/);
    for (const [index, step] of steps.entries()) {
      step.resolve(undefined);
      await client.got(new RegExp(`9\\r\\ndata: ${index}\n\n\\r\\n`));
    }
    await until('the end', () => client.received.endsWith('0\r\n\r\n') || serving.ended.length > 0);
    assert.equal(serving.handled, 0);
    client.socket.destroy();
  });

  it('that breaks off upstream breaks off here, and never looks complete', async () => {
    await using serving = await RawServing.start((response) => {
      response.writeHead(200);
      response.write('part', () => response.destroy());
    });
    const client = serving.connect();
    client.socket.write(serving.request('{}'));
    await until('the end', () => client.isEnded);
    assert.match(client.received, /part/);
    assert.doesNotMatch(client.received, /0\r\n\r\n$/);
    assert.equal(serving.ended[0]?.status, null);
  });

  it('that the agent leaves, wholly or by half, ends the call upstream', async () => {
    for (const leave of ['destroy', 'end'] as const) {
      await using serving = await RawServing.start((response) => {
        response.writeHead(200);
        response.write('first');
      });
      const client = serving.connect();
      client.socket.write(serving.request('{}'));
      await client.got(/first/);
      client.socket[leave]();
      await serving.upstream.opened(0);
      await until('the end', () => serving.ended.length === 1);
      assert.deepEqual([serving.ended[0]?.status, serving.gateway.runningCalls], [null, 0]);
    }
  });

  it('is read no further than the agent reads', async () => {
    let response: Parameters<Answer>[0] | null = null;
    await using serving = await RawServing.start((given) => {
      response = given;
      given.writeHead(200);
      given.flushHeaders();
    });
    const client = serving.connect();
    client.socket.write(serving.request('{}'));
    await client.got(/200 OK/);
    client.socket.pause();
    const piece = Buffer.alloc(1024 * 1024, 'x');
    const written = response as unknown as Parameters<Answer>[0];
    for (let index = 0; index < 32; index += 1) written.write(piece);
    await until('no progress', async () => {
      const before = written.writableLength;
      await new Promise((resolve) => setTimeout(resolve, 20));
      return written.writableLength === before;
    });
    assert.ok(written.writableLength > 4 * piece.length, 'upstream is held up');
    client.socket.resume();
    written.end();
    await until('the end', () => client.received.endsWith('\r\n0\r\n\r\n'));
  });

  it('hears of a spent budget, and of a rollout that ends', async () => {
    await using serving = await RawServing.start((response, call) => {
      if (call.body.toString() !== 'silent') void echo(response, call);
    });
    serving.key = await serving.route('once', { ...noRules, budgets: { max_turns: 1 } });
    const client = serving.connect();
    client.socket.write(serving.request('one'));
    await client.got(/one\.$/);
    client.socket.write(serving.request('two'));
    assert.match(await client.got(/BUDGET_EXHAUSTED/), /^HTTP\/1\.1 403 Forbidden\r\n/);
    serving.key = await serving.route('other');
    client.socket.write(serving.request('silent'));
    await serving.upstream.opened(1);
    assert.deepEqual(await serving.gateway.abort('other'), { callsEnded: 1 });
    assert.match(await client.got(/ROUTE_KEY_INVALID/), /^HTTP\/1\.1 401 /);
    assert.equal(serving.handled, 0);
    client.socket.destroy();
  });

  it('goes by the key of each request, as it lives at that moment', async () => {
    await using serving = await RawServing.start((response, call) => {
      void echo(response, { ...call, body: Buffer.from(call.url) });
    });
    const upstreamUrl = serving.upstream.url;
    const keyOf = async (rolloutId: string): Promise<string> => {
      const request = { rolloutId, upstreamUrl: `${upstreamUrl}/${rolloutId}`, upstreamKey: null };
      return (await serving.gateway.register(request)).apiKey;
    };
    const keys = { a: await keyOf('a'), b: await keyOf('b') };
    const client = serving.connect();
    for (const id of ['a', 'a', 'b', 'a', 'b', 'b'] as const) {
      serving.key = keys[id];
      client.socket.write(serving.request('the same'));
      assert.match(await client.got(/\.$/), new RegExp(`got \\S*/${id}/chat/completions\\.$`));
    }
    await serving.gateway.revoke('b');
    client.socket.write(serving.request('the same'));
    assert.match(await client.got(/ROUTE_KEY_INVALID/), /^HTTP\/1\.1 401 /);
    client.socket.destroy();
  });

  it('goes on with a request that comes in one piece with the rest of a refused one', async () => {
    await using serving = await RawServing.start(echo);
    serving.key = await serving.route('once', { ...noRules, budgets: { max_turns: 1 } });
    const client = serving.connect();
    client.socket.write(serving.request('one'));
    await client.got(/one\.$/);
    client.socket.write(serving.request('half').replace('Length: 4', 'Length: 8'));
    await client.got(/BUDGET_EXHAUSTED/);
    client.socket.write(`rest${serving.request('three')}`);
    await client.got(/BUDGET_EXHAUSTED/);
    assert.equal(serving.handled, 0);
    client.socket.destroy();
  });

  for (const isRaw of [true, false])
    it(`is read to the end of a request that the upstream has answered before, ${isRaw ? 'here' : 'by node:http'} too`, async () => {
      await using serving = await RawServing.start(echo, { isRaw });
      await using upstream = await ScriptedUpstream.start();
      const address = { upstreamUrl: `http://127.0.0.1:${upstream.port}`, upstreamKey: null };
      serving.key = (await serving.gateway.register({ rolloutId: 'early', ...address })).apiKey;
      const client = serving.connect();
      // More than the system holds between the three.
      const [pieces, megabyte] = [40, 1024 * 1024];
      const large = Buffer.from(serving.request('x'.repeat(pieces * megabyte)));
      let sent = 0;
      const send = (): void => {
        const piece = large.subarray(sent * megabyte, (sent + 1) * megabyte);
        client.socket.write(piece, () => {
          sent += 1;
          if (sent <= pieces) send();
        });
      };
      send();
      const line = await upstream.connection(0);
      line.socket.pause();
      await until('no progress', async () => {
        const before = sent;
        await new Promise((resolve) => setTimeout(resolve, 50));
        return sent > 0 && sent === before;
      });
      assert.ok(sent < pieces, `${sent} are on their way`);
      line.socket.write('HTTP/1.1 413 Content Too Large\r\ncontent-length: 0\r\n\r\n');
      await client.got(/HTTP\/1\.1 413 [^]*status 413/);
      await until('all of it', () => sent > pieces);
      client.socket.destroy();
    });

  it('hears of a defect, and is served on', async () => {
    const begin = (): never => {
      throw new Error('a defect of the capture');
    };
    await using serving = await RawServing.start(echo, { capture: captureWith(begin) });
    const client = serving.connect();
    for (let count = 0; count < 2; count += 1) {
      client.socket.write(serving.request('{}'));
      assert.match(await client.got(/INTERNAL/), /^HTTP\/1\.1 500 /);
    }
    assert.equal(serving.handled, 0);
    client.socket.destroy();
  });

  it('is closed when it is idle for as long as the server says, or when a body does not come', async () => {
    const clock = new ManualClock();
    await using serving = await RawServing.start(echo, { clock });
    serving.server.keepAliveTimeout = 5_000;
    serving.server.requestTimeout = 9_000;
    const [silent, used, slow] = [serving.connect(), serving.connect(), serving.connect()];
    used.socket.write(serving.request('one'));
    await used.got(/one\.$/);
    slow.socket.write(serving.request('four').slice(0, -1));
    await serving.upstream.opened(0);
    await until('a call', () => serving.gateway.runningCalls === 1);
    await until('a watch', () => clock.pauses.includes(1_000));
    const pass = async (ms: number): Promise<void> => {
      for (let passed = 0; passed < ms; passed += 1_000) {
        await until('a watch', () => clock.pauses.filter((pause) => pause === 1_000).length > 0);
        clock.advance(1_000);
        await new Promise(setImmediate);
      }
    };
    await pass(4_000);
    assert.deepEqual([silent.isEnded, used.isEnded, slow.isEnded], [false, false, false]);
    await pass(2_000);
    await until('idle ones are closed', () => silent.isEnded && used.isEnded);
    assert.equal(slow.isEnded, false);
    await pass(4_000);
    await until('the slow one is closed', () => slow.isEnded);
  });

  it('ends with its answer when the server closes', async () => {
    const go = Promise.withResolvers<undefined>();
    await using serving = await RawServing.start(async (response, call) => {
      await go.promise;
      void echo(response, call);
    });
    const [idle, busy] = [serving.connect(), serving.connect()];
    busy.socket.write(serving.request('one'));
    await serving.upstream.opened(1);
    serving.connections?.close();
    await until('the idle one is closed', () => idle.isEnded);
    go.resolve(undefined);
    await until('the busy one is closed', () => busy.isEnded);
    assert.match(busy.received, /connection: close\r\n\r\ngot one\.$/);
  });
});

describe('requests cut anywhere', { timeout: 60_000 }, () => {
  it('have the answers that node:http alone gives', async () => {
    await using raw = await RawServing.start(echo);
    await using plain = await RawServing.start(echo, { isRaw: false });
    const draws = new RandomDraws(42);
    for (let index = 0; index < 60; index += 1) {
      const bodies = Array.from({ length: 1 + draws.below(4) }, (_, at) =>
        `${at}`.repeat(draws.below(90)),
      );
      const lines = draws.pick([[], ['Expect: 100-continue'], ['X-A: b']]);
      const seed = draws.below(1_000_000);
      const answers = await Promise.all(
        [raw, plain].map(async (serving) => {
          const cuts = new RandomDraws(seed);
          const client = serving.connect();
          const text =
            bodies.map((body) => serving.request(body, lines)).join('') +
            serving.request('last', ['Connection: close']);
          for (let at = 0; at < text.length;) {
            const to = Math.min(text.length, at + 1 + cuts.below(cuts.pick([20, 400])));
            client.socket.write(text.slice(at, to));
            if (cuts.chance(0.3)) await new Promise(setImmediate);
            at = to;
          }
          await until('the end', () => client.isEnded);
          return client.received
            .match(/HTTP\/1\.1 \d+|got \w*\./g)
            ?.filter((line) => !line.endsWith('100'));
        }),
      );
      assert.deepEqual(answers[0], answers[1]);
      assert.equal(answers[0]?.length, 2 * (bodies.length + 1));
    }
    assert.ok(raw.handled < plain.handled);
  });
});
