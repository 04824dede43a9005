import assert from 'node:assert/strict';
import { createServer, request, type Server } from 'node:http';
import { connect, type AddressInfo, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { mkdtemp, rm } from 'node:fs/promises';
import { after, before, describe, it } from 'node:test';
import { once } from 'node:events';
import {
  EgressProxy,
  type EgressProxyOptions,
} from '../../../src/environments/shared/egress-proxy.ts';
import type { AllowedHost, NetworkPolicy } from '../../../src/wire/network-policy.ts';

const allow = (...hosts: AllowedHost[]): NetworkPolicy => ({ mode: 'allowlist', hosts });
const name = (value: string): AllowedHost => ({ kind: 'hostname', value });
const resolvesHere = async (): Promise<string[]> => ['127.0.0.1'];

let target: Server;
let targetPort = 0;

before(async () => {
  target = createServer((incoming, outgoing) => {
    const chunks: Buffer[] = [];
    incoming.on('data', (chunk: Buffer) => chunks.push(chunk));
    incoming.on('end', () => {
      outgoing.setHeader('x-seen-proxy-headers', String(incoming.headers['proxy-connection']));
      outgoing.setHeader('x-seen-host', String(incoming.headers.host));
      outgoing.end(`${incoming.method} ${incoming.url} ${Buffer.concat(chunks).toString()}`);
    });
  });
  target.listen(0, '127.0.0.1');
  await once(target, 'listening');
  targetPort = (target.address() as AddressInfo).port;
});
after(() => {
  target.closeAllConnections();
  target.close();
});

async function withProxy(
  options: EgressProxyOptions,
  work: (port: number, proxy: EgressProxy) => Promise<void>,
): Promise<void> {
  const proxy = new EgressProxy(options);
  try {
    const { port } = await proxy.listen({ host: '127.0.0.1', port: 0 });
    await work(port!, proxy);
  } finally {
    await proxy.close();
  }
}

function get(port: number, url: string, body = ''): Promise<{ status: number; text: string }> {
  return new Promise((resolve, reject) => {
    const outgoing = request(
      { host: '127.0.0.1', port, path: url, method: 'POST', agent: false, headers: { host: 'x' } },
      (incoming) => {
        let text = '';
        incoming.on('data', (chunk: Buffer) => (text += chunk.toString()));
        incoming.on('end', () => resolve({ status: incoming.statusCode ?? 0, text }));
      },
    );
    outgoing.on('error', reject);
    outgoing.end(body);
  });
}

async function openTunnel(
  port: number,
  authority: string,
): Promise<{ socket: Socket; status: string }> {
  const socket = connect({ host: '127.0.0.1', port });
  socket.on('error', () => undefined);
  socket.write(`CONNECT ${authority} HTTP/1.1\r\nHost: ${authority}\r\n\r\n`);
  const [chunk] = (await once(socket, 'data')) as [Buffer];
  return { socket, status: chunk.toString().split(' ')[1] ?? '' };
}

const open: EgressProxyOptions = {
  policy: allow(name('good.test')),
  resolveName: resolvesHere,
  allowLocal: true,
};

describe('egress proxy', () => {
  it('forwards a plain request to an allowed name and back, body included', () =>
    withProxy(open, async (port, proxy) => {
      const answer = await get(port, `http://good.test:${targetPort}/a?b=1`, 'hello');
      assert.deepEqual(answer, { status: 200, text: 'POST /a?b=1 hello' });
      assert.deepEqual(proxy.counts, { allowed: 1, refused: 0, failed: 0 });
    }));

  it('tells the server the host that was asked for, also when the client named none or another', () =>
    withProxy(open, async (port) => {
      for (const host of ['', 'Host: elsewhere.test\r\n']) {
        const socket = connect({ host: '127.0.0.1', port });
        socket.write(`GET http://good.test:${targetPort}/ HTTP/1.0\r\n${host}\r\n`);
        let answer = '';
        socket.on('data', (chunk: Buffer) => (answer += chunk.toString()));
        await once(socket, 'close');
        assert.match(answer, new RegExp(`x-seen-host: good.test:${targetPort}\r\n`));
      }
    }));

  it('refuses a name that is not listed without resolving it', async () => {
    const asked: string[] = [];
    const resolveName = async (wanted: string): Promise<string[]> => {
      asked.push(wanted);
      return ['127.0.0.1'];
    };
    await withProxy({ ...open, resolveName }, async (port, proxy) => {
      assert.equal((await get(port, `http://bad.test:${targetPort}/`)).status, 403);
      assert.equal((await openTunnel(port, `bad.test:${targetPort}`)).status, '403');
      assert.equal((await get(port, `http://notgood.test:${targetPort}/`)).status, 403);
      assert.deepEqual(asked, []);
      assert.equal(proxy.counts.refused, 3);
    });
  });

  it('refuses an allowed name that resolves to this machine', () =>
    withProxy({ ...open, allowLocal: false }, async (port) => {
      const answer = await get(port, `http://good.test:${targetPort}/`);
      assert.equal(answer.status, 403);
      assert.match(answer.text, /address of the host/);
    }));

  it('lets through an address of this machine that a rule names as an address', () =>
    withProxy({ policy: allow({ kind: 'ipv4-address', value: '127.0.0.1' }) }, async (port) => {
      assert.equal((await get(port, `http://127.0.0.1:${targetPort}/`)).status, 200);
      assert.equal((await get(port, `http://[::ffff:127.0.0.1]:${targetPort}/`)).status, 200);
      assert.equal((await get(port, `http://127.0.0.2:${targetPort}/`)).status, 403);
    }));

  for (const [rule, url, status] of [
    [{ kind: 'ipv4-cidr', value: '127.0.0.0/30' }, 'http://127.0.0.1', 200],
    [{ kind: 'ipv4-cidr', value: '10.0.0.0/8' }, 'http://127.0.0.1', 403],
    [{ kind: 'wildcard-hostname', value: '*.good.test' }, 'http://a.b.good.test', 200],
    [{ kind: 'wildcard-hostname', value: '*.good.test' }, 'http://good.test', 403],
    [{ kind: 'wildcard-hostname', value: '*.good.test' }, 'http://evilgood.test', 403],
    [{ kind: 'hostname', value: 'good.test' }, 'http://GOOD.test.', 200],
    [{ kind: 'hostname', value: 'good.test' }, 'http://127.0.0.1', 403],
    [{ kind: 'hostname', value: 'good.test' }, 'http://2130706433', 403],
  ] as const)
    it(`with ${rule.value} answers ${status} to ${url}`, () =>
      withProxy({ ...open, policy: allow(rule) }, async (port) => {
        assert.equal((await get(port, `${url}:${targetPort}/`)).status, status);
      }));

  it('carries a tunnel and ends it when a new policy forbids it', () =>
    withProxy(open, async (port, proxy) => {
      const { socket, status } = await openTunnel(port, `good.test:${targetPort}`);
      assert.equal(status, '200');
      socket.write('GET /t HTTP/1.1\r\nHost: good.test\r\n\r\n');
      const [chunk] = (await once(socket, 'data')) as [Buffer];
      assert.match(chunk.toString(), /GET \/t/);
      proxy.setPolicy(allow(name('good.test'), name('other.test')));
      socket.write('GET /u HTTP/1.1\r\nHost: good.test\r\n\r\n');
      await once(socket, 'data');
      const closed = once(socket, 'close');
      proxy.setPolicy({ mode: 'no-network' });
      await closed;
      assert.equal((await openTunnel(port, `good.test:${targetPort}`)).status, '403');
    }));

  it('answers 400 to what is neither absolute http nor CONNECT host:port', () =>
    withProxy(open, async (port) => {
      assert.equal((await get(port, '/relative')).status, 400);
      assert.equal((await get(port, 'ftp://good.test/')).status, 400);
      assert.equal((await openTunnel(port, 'good.test')).status, '400');
      assert.equal((await openTunnel(port, 'good.test:99999')).status, '400');
    }));

  it('answers 504 when a name server never answers', () =>
    withProxy(
      { ...open, connectTimeoutMs: 30, resolveName: () => new Promise(() => undefined) },
      async (port) => {
        assert.equal((await get(port, `http://good.test:${targetPort}/`)).status, 504);
      },
    ));

  it('answers 502 when nothing listens at the target', () =>
    withProxy(open, async (port) => {
      assert.equal((await get(port, 'http://good.test:1/')).status, 502);
    }));

  it('listens on a unix socket and never on every address', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'slipway-proxy-'));
    const proxy = new EgressProxy(open);
    try {
      await proxy.listen({ socketPath: join(folder, 'p.sock') });
      const outgoing = request({
        socketPath: join(folder, 'p.sock'),
        path: `http://good.test:${targetPort}/unix`,
        agent: false,
      });
      outgoing.end();
      const [incoming] = (await once(outgoing, 'response')) as [
        { statusCode: number; resume(): void },
      ];
      incoming.resume();
      assert.equal(incoming.statusCode, 200);
      assert.throws(() => new EgressProxy(open).listen({ host: '0.0.0.0', port: 0 }), RangeError);
    } finally {
      await proxy.close();
      await rm(folder, { recursive: true });
    }
  });
});
