import assert from 'node:assert/strict';
import type { LookupFunction } from 'node:net';
import { describe, it } from 'node:test';
import type { AnswerHead } from '../../../src/gateway/upstream/answer-head.ts';
import { UpstreamClient } from '../../../src/gateway/upstream/upstream-client.ts';
import type {
  BodyTaker,
  UpstreamExchange,
  UpstreamRequest,
  UpstreamSink,
} from '../../../src/gateway/upstream/upstream-request.ts';
import { localCertificate } from '../../fakes/local-certificate.ts';
import { ManualClock } from '../../fakes/manual-clock.ts';
import { until } from '../../support/until.ts';
import { ScriptedUpstream } from './scripted-upstream.ts';
import { RequestHeaders } from '../../../src/gateway/upstream/request-headers.ts';

const toLoopback: LookupFunction = (_name, { all }, callback) => {
  if (all === true) callback(null, [{ address: '127.0.0.1', family: 4 }]);
  else callback(null, '127.0.0.1', 4);
};

class Heard implements UpstreamSink {
  readonly heads: AnswerHead[] = [];
  readonly ends: string[] = [];
  body = '';

  head(head: AnswerHead): void {
    this.heads.push(head);
  }

  piece(bytes: Buffer): void {
    this.body += bytes.toString('latin1');
  }

  ended(): void {
    this.ends.push('ended');
  }

  failed(error: Error): void {
    this.ends.push(String((error as NodeJS.ErrnoException).code));
  }

  async end(): Promise<string> {
    await until('the end of a request', () => this.ends.length > 0);
    return this.ends.join();
  }
}

class Asking implements AsyncDisposable {
  readonly clock = new ManualClock();
  readonly client: UpstreamClient;
  readonly upstream: ScriptedUpstream;

  constructor(upstream: ScriptedUpstream, lookup = toLoopback) {
    this.upstream = upstream;
    this.client = new UpstreamClient({ clock: this.clock, lookup, ca: localCertificate.cert });
  }

  static async start(lookup?: LookupFunction): Promise<Asking> {
    return new Asking(await ScriptedUpstream.start(), lookup);
  }

  ask(request: Partial<UpstreamRequest> = {}): { heard: Heard; exchange: UpstreamExchange } {
    const heard = new Heard();
    const asked = {
      method: 'POST',
      path: '/p',
      headers: new RequestHeaders([]),
      body: Buffer.from('{}'),
    } as const;
    const exchange = this.client.send(
      { origin: this.upstream.origin, ...asked, ...request },
      heard,
    );
    return { heard, exchange };
  }

  /** Asks, and answers with these bytes on that connection. */
  async answered(connection: number, requests: number, answer = plain('ok')): Promise<Heard> {
    const { heard } = this.ask();
    const line = await this.upstream.connection(connection);
    await line.requests(requests);
    line.socket.write(answer, 'latin1');
    assert.equal(await heard.end(), 'ended');
    return heard;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.client.destroy();
    await this.upstream[Symbol.asyncDispose]();
  }
}

const plain = (body: string, lines = ''): string =>
  `HTTP/1.1 200 OK\r\n${lines}content-length: ${body.length}\r\n\r\n${body}`;

describe('a request', { timeout: 60_000 }, () => {
  it('has its path and headers as they are, its body, and the length of it', async () => {
    await using asking = await Asking.start();
    asking.ask({
      path: '/a%2Fb?c=é',
      headers: new RequestHeaders(['X-Y', 'ü']),
      body: Buffer.from('{"a":1}'),
    });
    asking.ask({ method: 'GET', body: null });
    const first = await asking.upstream.connection(0);
    await first.requests(1);
    const { port } = asking.upstream;
    assert.equal(
      first.received,
      `POST /a%2Fb?c=é HTTP/1.1\r\nhost: localhost:${port}\r\nconnection: keep-alive\r\nX-Y: ü\r\ncontent-length: 7\r\n\r\n{"a":1}`,
    );
    const second = await asking.upstream.connection(1);
    await second.requests(1);
    assert.equal(
      second.received,
      `GET /p HTTP/1.1\r\nhost: localhost:${port}\r\nconnection: keep-alive\r\n\r\n`,
    );
  });

  for (const [name, request] of [
    ['a line in a value', { headers: new RequestHeaders(['x-a', 'b\r\nx-c: d']) }],
    ['a line in a name', { headers: new RequestHeaders(['x-a: b\r\nx-c', 'd']) }],
    ['a character beyond Latin-1', { headers: new RequestHeaders(['x-a', '€']) }],
    ['a space in the path', { path: '/a HTTP/1.1\r\nx: y' }],
    ['no path', { path: 'a' }],
  ] as const)
    it(`with ${name} is not sent`, async () => {
      await using asking = await Asking.start();
      assert.equal(await asking.ask(request).heard.end(), 'INVALID_REQUEST');
      assert.equal(asking.upstream.connections.length, 0);
    });

  it('takes a body that is on its way no faster than the upstream takes it, framed as it was declared', async () => {
    for (const [length, ends] of [
      [null, '0\r\n\r\n'],
      [64 * 1024 * 160, 'x'],
    ] as const) {
      await using asking = await Asking.start();
      let taker: BodyTaker | null = null;
      let resumes = 0;
      const { heard } = asking.ask({
        body: { length, start: (given) => (taker = given), resume: () => (resumes += 1) },
      });
      const line = await asking.upstream.connection(0);
      line.socket.pause();
      await until('the beginning', () => taker !== null);
      const piece = Buffer.alloc(64 * 1024, 'x');
      const give = (): boolean => (taker as unknown as BodyTaker).piece(piece);
      let given = 1;
      while (give()) given += 1;
      line.socket.resume();
      await until('room', () => resumes > 0);
      for (; given < 160; given += 1) give();
      (taker as unknown as BodyTaker).end();
      await until(
        'all of it',
        () => line.received.length > 64 * 1024 * 160 && line.received.endsWith(ends),
      );
      line.socket.write(plain('ok'));
      assert.equal(await heard.end(), 'ended');
      const [head = '', ...body] = line.received.split('\r\n\r\n');
      if (length === null) assert.match(head, /transfer-encoding: chunked/);
      else assert.equal(body.join('\r\n\r\n').length, length);
      await asking.answered(0, length === null ? 3 : 2);
    }
  });

  it('whose answer comes before its body is over ends there, and its connection with it', async () => {
    await using asking = await Asking.start();
    const { heard } = asking.ask({
      body: {
        length: 10,
        start: (taker) => void taker.piece(Buffer.from('abc')),
        resume: () => undefined,
      },
    });
    const line = await asking.upstream.connection(0);
    await line.requests(1);
    line.socket.write(plain('too much'));
    assert.equal(await heard.end(), 'ended');
    await line.closed();
  });

  it('that is aborted hears nothing more, and its connection is closed', async () => {
    await using asking = await Asking.start();
    const { heard, exchange } = asking.ask();
    const line = await asking.upstream.connection(0);
    await line.requests(1);
    line.socket.write('HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nabc');
    await until('a piece', () => heard.body === 'abc');
    exchange.abort();
    exchange.abort();
    await line.closed();
    assert.deepEqual([heard.ends, asking.client.connections], [[], 0]);
  });

  it('aborted by who hears of its head hears of no body', async () => {
    await using asking = await Asking.start();
    const heard = new Heard();
    const request = { origin: asking.upstream.origin, method: 'POST', path: '/' } as const;
    const exchange = asking.client.send(
      { ...request, headers: new RequestHeaders([]), body: null },
      {
        head: () => exchange.abort(),
        piece: (bytes) => heard.piece(bytes),
        ended: () => heard.ended(),
        failed: (error) => heard.failed(error),
      },
    );
    const line = await asking.upstream.connection(0);
    await line.requests(1);
    line.socket.write(plain('body'));
    await line.closed();
    assert.deepEqual([heard.body, heard.ends], ['', []]);
  });

  it('is read no further while it is paused', async () => {
    await using asking = await Asking.start();
    const { heard, exchange } = asking.ask();
    const line = await asking.upstream.connection(0);
    await line.requests(1);
    const megabytes = 16 * 1024 * 1024;
    line.socket.write(`HTTP/1.1 200 OK\r\ncontent-length: ${megabytes}\r\n\r\n`);
    await until('the head', () => heard.heads.length === 1);
    exchange.pause();
    const hadRoom = line.socket.write('x'.repeat(megabytes));
    await until('no progress', async () => {
      const before = line.socket.writableLength;
      await new Promise((resolve) => setTimeout(resolve, 20));
      return before === line.socket.writableLength;
    });
    assert.equal(hadRoom, false);
    assert.ok(heard.body.length < megabytes / 2, `${heard.body.length} came`);
    exchange.resume();
    assert.equal(await heard.end(), 'ended');
    assert.equal(heard.body.length, megabytes);
  });
});

describe('a connection', { timeout: 60_000 }, () => {
  it('serves one request after the other, and requests at the same time have one each', async () => {
    await using asking = await Asking.start();
    await asking.answered(0, 1);
    await asking.answered(0, 2);
    asking.ask();
    asking.ask();
    await asking.upstream.connection(1);
    assert.equal(asking.client.connections, 2);
  });

  for (const [name, answer] of [
    ['the upstream closes it', plain('ok', 'connection: close\r\n')],
    ['the upstream is an old one', plain('ok').replace('1.1', '1.0')],
    [
      'more comes than was asked for',
      `${plain('ok')}HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\nevil`,
    ],
    ['the upstream keeps it for a second only', plain('ok', 'keep-alive: timeout=1\r\n')],
  ] as const)
    it(`is not used again where ${name}`, async () => {
      await using asking = await Asking.start();
      assert.equal((await asking.answered(0, 1, answer)).body, 'ok');
      await (await asking.upstream.connection(0)).closed();
      assert.equal((await asking.answered(1, 1)).body, 'ok');
    });

  it('on which something comes that nobody asked for is closed', async () => {
    await using asking = await Asking.start();
    await asking.answered(0, 1);
    const line = await asking.upstream.connection(0);
    line.socket.write(plain('evil'));
    await line.closed();
    assert.equal((await asking.answered(1, 1)).body, 'ok');
  });

  it('that is idle for four seconds is closed, or for less where the upstream says so', async () => {
    await using asking = await Asking.start();
    await asking.answered(0, 1);
    const line = await asking.upstream.connection(0);
    asking.clock.advance(3_900);
    await asking.answered(0, 2);
    asking.clock.advance(4_000);
    await asking.answered(1, 1, plain('ok', 'keep-alive: timeout=3\r\n'));
    await line.closed();
    asking.clock.advance(2_000);
    await (await asking.upstream.connection(1)).closed();
    await until('no connection', () => asking.client.connections === 0);
  });

  it('that was kept and turns out to be closed costs the request nothing, once', async () => {
    await using asking = await Asking.start();
    await asking.answered(0, 1);
    const { heard } = asking.ask();
    const line = await asking.upstream.connection(0);
    await line.requests(2);
    line.socket.destroy();
    const second = await asking.upstream.connection(1);
    await second.requests(1);
    second.socket.destroy();
    assert.match(await heard.end(), /^(?:CONNECTION_CLOSED|ECONNRESET)$/);
    assert.equal(asking.upstream.connections.length, 2);
  });

  for (const [name, late, partial, streams] of [
    ['after a while', true, false, false],
    ['after the first byte of an answer', false, true, false],
    ['while a body is on its way', false, false, true],
  ] as const)
    it(`that breaks ${name} is not asked a second time`, async () => {
      await using asking = await Asking.start();
      await asking.answered(0, 1);
      const { heard } = asking.ask({
        ...(streams && {
          body: {
            length: 9,
            start: (taker) => void taker.piece(Buffer.from('abc')),
            resume: () => undefined,
          },
        }),
      });
      const line = await asking.upstream.connection(0);
      await line.requests(2);
      if (late) asking.clock.advance(5_000);
      if (partial) line.socket.write('H', () => line.socket.destroy());
      else line.socket.destroy();
      assert.match(await heard.end(), /^(?:CONNECTION_CLOSED|ECONNRESET)$/);
      assert.equal(asking.upstream.connections.length, 1);
    });

  it('that does not come about in time is given up, and one that is refused is told as such', async () => {
    const asked = Promise.withResolvers<undefined>();
    await using asking = await Asking.start(() => asked.resolve(undefined));
    const { heard } = asking.ask();
    await asked.promise;
    asking.clock.advance(10_000);
    assert.equal(await heard.end(), 'CONNECT_TIMEOUT');
    const gone = await ScriptedUpstream.start();
    const { origin } = gone;
    await gone[Symbol.asyncDispose]();
    await using other = await Asking.start();
    assert.equal(await other.ask({ origin }).heard.end(), 'ECONNREFUSED');
    assert.equal(asking.client.connections + other.client.connections, 0);
  });

  it('goes where the lookup allows, and nowhere else', async () => {
    const refusal = Object.assign(new Error('no'), { code: 'REFUSED_HERE' });
    await using asking = await Asking.start((_name, _options, callback) =>
      callback(refusal, '', 0),
    );
    assert.equal(await asking.ask().heard.end(), 'REFUSED_HERE');
    assert.equal(asking.upstream.connections.length, 0);
  });

  it('over TLS says nothing to whom it cannot trust', async () => {
    await using upstream = await ScriptedUpstream.start(localCertificate);
    await using asking = new Asking(upstream);
    assert.equal((await asking.answered(0, 1)).body, 'ok');
    assert.equal((await asking.answered(0, 2)).body, 'ok');
    const wary = new UpstreamClient({ clock: new ManualClock(), lookup: toLoopback });
    const heard = new Heard();
    const request = {
      method: 'POST',
      path: '/',
      headers: new RequestHeaders([]),
      body: Buffer.from('secret'),
    } as const;
    wary.send({ origin: upstream.origin, ...request }, heard);
    assert.match(await heard.end(), /SELF_SIGNED/);
    assert.equal(
      upstream.connections.filter(({ received }) => received.includes('secret')).length,
      0,
    );
    wary.destroy();
  });

  it('is closed with the client, and what runs fails, on a kept one too', async () => {
    await using asking = await Asking.start();
    await asking.answered(0, 1);
    const both = [asking.ask(), asking.ask()];
    const lines = [await asking.upstream.connection(0), await asking.upstream.connection(1)];
    await lines[0]?.requests(2);
    await lines[1]?.requests(1);
    asking.client.destroy();
    asking.client.destroy();
    for (const { heard } of both) assert.equal(await heard.end(), 'CLIENT_CLOSED');
    for (const line of lines) await line.closed();
    assert.equal(asking.client.connections, 0);
    assert.equal(await asking.ask().heard.end(), 'CLIENT_CLOSED');
  });
});
